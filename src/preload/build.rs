//! Generates one exported symbol per spelling of each call in the table (src/calls.rs).
//!
//! rustc hides what assembly files define, so each symbol is a naked function; it hands its slot's address and the
//! offset of the thread's words to the wrapper for what its arguments leave on the stack.

#[path = "../calls.rs"]
#[allow(dead_code)]
mod calls;

use std::fmt::Write;

/// Arguments that take no word of the stack (System V ABI for x86-64, 3.2.3).
const IN_REGISTERS: u8 = 6;

fn main() {
    println!("cargo::rerun-if-changed=../calls.rs");
    println!("cargo::rerun-if-changed=build.rs");
    let mut code = String::new();
    let mut slots = String::new();
    let mut count = 0;
    let mut greatest = 0;
    for (id, call) in calls::CALLS.iter().enumerate() {
        for (name, binding) in call.spellings() {
            let arity = call.arguments(binding);
            greatest = greatest.max(arity);
            writeln!(slots, "Slot::new(c\"{name}\", {id}, Binding::{binding:?}),").unwrap();
            writeln!(
                code,
                "#[unsafe(naked)] #[unsafe(no_mangle)] unsafe extern \"C\" fn {name}() {{\
                 naked_asm!(\"lea r11, [rip + {{slots}} + {count} * {{size}}]\", \
                 \"mov r10, qword ptr [rip + copytune_tls@GOTTPOFF]\", \"jmp {{wrapper}}\", \
                 slots = sym SLOTS, size = const size_of::<Slot>(), wrapper = sym wrap_{}) }}",
                arity.saturating_sub(IN_REGISTERS)
            )
            .unwrap();
            count += 1;
        }
    }
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let text = format!("pub static SLOTS: [Slot; {count}] = [\n{slots}];\n{code}");
    std::fs::write(format!("{out}/stubs.rs"), text).expect("OUT_DIR can be written");
    assert!(
        greatest <= 13,
        "src/preload/src/wrapper.rs has wrappers for at most 13 arguments"
    );
}
