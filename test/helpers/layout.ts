export * from "../../src/ffi/native-layout.ts";
