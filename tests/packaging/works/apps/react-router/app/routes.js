import { index, route } from "@react-router/dev/routes";

export default [index("routes/home.jsx"), route("limit", "routes/limit.js"), route("limited", "routes/limited.js")];
