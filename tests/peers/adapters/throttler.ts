// In place of src/throttler.service.ts.
// @ts-nocheck
import { throttlerStorage } from "tidegate/nest";

export class ThrottlerStorageService {
  constructor() {
    Object.assign(this, throttlerStorage());
  }
}
