//! Which memory is ordinary, by the text of /proc/PID/smaps.

use copytune_protocol::smaps::{Area, Snapshot};

const SMAPS: &str = "\
1000-3000 rw-p 00000000 00:00 0                          [heap]
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac sd
5000-6000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac lo sd
8000-9000 r--p 00000000 08:01 77                         /lib/one
VmFlags: rd mr mw me sd
a000-f000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac sd hg
";

fn read(text: &str, end: usize) -> Snapshot {
    Snapshot::read(text.as_bytes(), end).expect("the text is understood")
}

fn all(snapshot: &Snapshot) -> Vec<Area> {
    snapshot.ordinary(0, usize::MAX).collect()
}

fn area(start: usize, end: usize, huge: bool) -> Area {
    Area { start, end, huge }
}

#[test]
fn locked_memory_and_files_are_not_ordinary() {
    let found = read(SMAPS, usize::MAX);
    let both = [area(0x1000, 0x3000, false), area(0xa000, 0xf000, true)];
    assert_eq!(all(&found), both);
    let parts: Vec<Area> = found.ordinary(0x2000, 0xb000).collect();
    assert_eq!(
        parts,
        [area(0x2000, 0x3000, false), area(0xa000, 0xb000, true)]
    );
    assert!(Snapshot::read("what is this\n".as_bytes(), usize::MAX).is_err());
}

#[test]
fn memory_was_free_only_where_surely_nothing_was() {
    assert!(!Snapshot::new().was_free(0x1000), "nothing is known");
    let found = read(SMAPS, 0x10000);
    for (address, was_free) in [
        (0x0, true),
        (0xfff, true),
        (0x1000, false),
        (0x2fff, false),
        (0x3000, true),
        (0x5800, false),
        (0x9000, true),
        (0xefff, false),
        (0xf000, true),
        (0xffff, true),
        (0x10000, false),
    ] {
        assert_eq!(found.was_free(address), was_free, "{address:x}");
    }
}

/// A later look at the lower addresses alone.
#[test]
fn what_lies_above_stays_known() {
    let lower = "1000-2000 rw-p 00000000 00:00 0\nVmFlags: rd wr mr mw me ac lo sd\n";
    let joined = read(lower, 0x8800).above(&read(SMAPS, usize::MAX));
    assert_eq!(all(&joined), [area(0xa000, 0xf000, true)]);
    assert!(joined.was_free(0x2000) && joined.was_free(0x87ff) && !joined.was_free(0xa000));
    assert!(joined.was_free(0x20000));
}

/// A stack, and what is locked: that they were seen says all, so nobody need look again.
#[test]
fn private_memory_that_is_not_ordinary_is_special() {
    let stack = "20000-30000 rw-p 00000000 00:00 0 [stack]\nVmFlags: rd wr mr mw me gd ac\n";
    let found = read(&format!("{SMAPS}{stack}"), usize::MAX);
    for (start, end, is_special) in [
        (0x1000, 0x3000, false),
        (0x4000, 0x5001, true),
        (0x5fff, 0x8000, true),
        (0x6000, 0x20000, false),
        (0x1f000, 0x20001, true),
        (0x30000, 0x40000, false),
    ] {
        assert_eq!(found.is_special(start, end), is_special, "{start:x}");
    }
    let lower = "1000-2000 rw-p 00000000 00:00 0\nVmFlags: rd wr mr mw me ac lo sd\n";
    let joined = read(lower, 0x8800).above(&found);
    assert!(joined.is_special(0x1000, 0x1001) && joined.is_special(0x20000, 0x20001));
    assert!(
        !joined.is_special(0x5000, 0x6000),
        "that was below the later look's end"
    );
}

/// Of what lies above, the places alone are known, and the stack.
#[test]
fn mappings_of_unknown_kind_are_neither_ordinary_nor_new() {
    let mut found = read(SMAPS, 0x3000);
    assert_eq!(found.until(), 0x3000);
    let stack = 0x2_8000;
    found.add_places(
        [(0x5000, 0x6000), (0xa000, 0xf000), (0x2_0000, 0x3_0000)],
        stack,
    );
    assert_eq!(all(&found), [area(0x1000, 0x3000, false)]);
    for (address, was_free) in [
        (0x3000, true),
        (0x4fff, true),
        (0x5000, false),
        (0xb000, false),
        (0xf000, true),
        (0x2_0000, false),
        (0x3_0000, true),
    ] {
        assert_eq!(found.was_free(address), was_free, "{address:x}");
    }
    assert!(!found.is_special(0xa000, 0xf000));
    // It grows downwards.
    assert!(found.is_special(0x1_8000, 0x3_0000));
    let looked = read(SMAPS, 0x9000).above(&found);
    assert_eq!(all(&looked), [area(0x1000, 0x3000, false)]);
    assert!(!looked.was_free(0xa000) && looked.was_free(0xf000));
    assert!(looked.is_special(0x1_8000, 0x3_0000));
}
