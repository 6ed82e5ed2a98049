//! Generates one exported symbol per spelling of each call in the table (src/mpi/calls.rs).
//!
//! rustc hides what assembly files define, so each symbol is a naked function. In a dormant thread it jumps to the
//! next implementation, except for sends, and ends of sends, that must be seen. Otherwise it passes its entry point and the offset of the
//! thread's words to the wrapper for the number of words that its arguments take on the stack.

#[path = "../mpi/calls.rs"]
#[allow(dead_code)]
mod calls;

use std::fmt::Write;

/// Arguments that take no word of the stack (System V ABI for x86-64, 3.2.3).
const IN_REGISTERS: u8 = 6;

fn main() {
    println!("cargo::rerun-if-changed=../mpi/calls.rs");
    println!("cargo::rerun-if-changed=build.rs");
    // By this name a program that is linked with the library finds the one that is preloaded, in place of a second.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcopytune.so");
    let mut code = String::new();
    let mut entries = String::new();
    let mut stacked_words = String::new();
    let mut names = String::new();
    let mut recent = String::new();
    let (mut count, mut count_of_recent) = (0, 0);
    let mut greatest = 0;
    for (id, call) in calls::CALLS.iter().enumerate() {
        for (name, binding) in call.spellings() {
            let arity = call.arguments(binding);
            greatest = greatest.max(arity);
            let stacked = arity.saturating_sub(IN_REGISTERS);
            let place = names.len();
            write!(names, "{name}\0").unwrap();
            writeln!(
                entries,
                "EntryPoint::new({count}, {place}, {id}, Binding::{binding:?}),"
            )
            .unwrap();
            write!(stacked_words, "{stacked}, ").unwrap();
            let (look, wake, operands) = match is_looked_at(call) {
                true => (LOOK, WAKE, OPERANDS),
                false if call.may_end_others() => (LOOK_LASTING, WAKE, LASTING),
                false => ("", "", ""),
            };
            // Decrement the dormancy counter; on underflow the wrapper restores it, as the carry tells.
            writeln!(
                code,
                "#[unsafe(naked)] #[unsafe(no_mangle)] unsafe extern \"C\" fn {name}() {{\
                 naked_asm!(\"lea r11, [rip + {{entries}} + {count} * {{size}}]\", \
                 \"mov r10, qword ptr [rip + copytune_tls@GOTTPOFF]\", \
                 \"sub qword ptr fs:[r10 + {{dormant}}], 1\", \"jb {{wrapper}}\", {look} \
                 \"jmp qword ptr [rip + {{dormant_next}} + {count} * 8]\", {wake} \
                 entries = sym ENTRY_POINTS, size = const size_of::<EntryPoint>(), dormant = const words::DORMANT, \
                 dormant_next = sym DORMANT_NEXT, wrapper = sym wrap_{stacked}, {operands}) }}"
            )
            .unwrap();
            if is_recent(call, binding) {
                writeln!(recent, "({place}, {}),", hash(&name)).unwrap();
                count_of_recent += 1;
            }
            count += 1;
        }
    }
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let text = format!(
        "pub static ENTRY_POINTS: [EntryPoint; {count}] = [\n{entries}];\n\
         pub static DORMANT_NEXT: [AtomicPtr<u8>; {count}] = [const {{ AtomicPtr::new(core::ptr::null_mut()) }}; {count}];\n\
         /// Words on the stack of each entry point's call.\n\
         pub(super) static STACKED: [u8; {count}] = [{stacked_words}];\n\
         /// All names, each ended by a zero.\n\
         pub(super) static NAMES: &str = \"{}\";\n\
         /// Those that not every MPI library has: their places among the names, and their hashes.\n\
         pub(super) static RECENT: [(u32, u32); {count_of_recent}] = [\n{recent}];\n",
        names.escape_default()
    );
    for (file, text) in [("entry_points.rs", text), ("stubs.rs", code)] {
        std::fs::write(format!("{out}/{file}"), text).expect("OUT_DIR can be written");
    }
    assert!(
        greatest <= 13,
        "src/preload/src/hooks/wrapper.rs has wrappers for at most 13 arguments"
    );
}

/// Dormant: must sends be seen (src/direct/shared/attention.rs)? No argument is passed in rax.
const LOOK: &str = r#""mov rax, qword ptr [rip + {requested}]", "mov rax, qword ptr [rax]",
    "cmp rax, qword ptr [rip + {acknowledged}]", "jne 2f","#;
/// They must. A set carry would tell the wrapper that the counter has underflowed.
const WAKE: &str = r#""2:", "clc", "jmp {wrapper}","#;
/// The symbols that it refers to.
const OPERANDS: &str = "requested = sym direct::REQUESTED, acknowledged = sym direct::ACKNOWLEDGED";

/// Dormant: must calls that may tell the program that sends are over be seen (src/direct/sender/showing.rs)?
const LOOK_LASTING: &str = r#""cmp byte ptr [rip + {lasts}], 0", "jne 2f","#;
/// The symbol that it refers to.
const LASTING: &str = "lasts = sym direct::LASTS";

/// Whether peers may read what this call sends, so that it must be seen.
fn is_looked_at(call: &calls::Call) -> bool {
    use calls::{Completion, Role};
    match call.role {
        Role::Start | Role::StartAll => true,
        Role::Collective { sources, .. } => !sources.is_empty(),
        Role::Transfer {
            send, completion, ..
        } => send.is_some() && !matches!(completion, Completion::Persistent(_)),
        _ => false,
    }
}

/// Whether it is a C function that not every MPI library has: others can ask for it by a weak reference or by name.
fn is_recent(call: &calls::Call, binding: calls::Binding) -> bool {
    match binding {
        calls::Binding::C => call.recent,
        calls::Binding::CLarge => true,
        _ => false,
    }
}

/// The hash of DT_GNU_HASH tables: Bernstein's, h · 33 + c from 5381.
fn hash(name: &str) -> u32 {
    let step = |hash: u32, byte: u8| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
    name.bytes().fold(5381, step)
}
