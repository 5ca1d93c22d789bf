//! Tells the linker that Node.js brings the Node-API symbols.

fn main() {
    napi_build::setup();
}
