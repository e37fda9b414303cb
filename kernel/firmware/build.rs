//! Hands the linker the memory map of the target, and the scripts of its runtime and of defmt.

use std::env;
use std::path::PathBuf;

fn main() {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo says which target");
    let (map, scripts): (&str, &[&str]) = match arch.as_str() {
        "arm" => ("thumbv7em.x", &["link.x", "defmt.x"]),
        "riscv32" => ("riscv32imac.x", &["memory.x", "link.x", "defmt.x"]),
        _ => panic!("no memory map for {arch}: name a --target, see README.md"),
    };
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says where to"));
    let map = PathBuf::from("memory").join(map);
    println!("cargo:rerun-if-changed={}", map.display());
    std::fs::copy(&map, out.join("memory.x")).unwrap_or_else(|error| panic!("{}: {error}", map.display()));
    println!("cargo:rustc-link-search={}", out.display());
    for script in scripts {
        println!("cargo:rustc-link-arg-bins=-T{script}");
    }
}
