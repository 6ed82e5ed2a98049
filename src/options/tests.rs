use std::os::unix::ffi::OsStringExt;

use proptest::prelude::*;

use super::*;

fn parse(pairs: &[(&str, &str)]) -> (Options, Vec<String>) {
    Options::from_lookup(&|name| {
        pairs
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, value)| OsString::from(value))
    })
}

#[test]
fn nothing_set_gives_the_defaults() {
    assert_eq!(parse(&[]), (Options::default(), Vec::new()));
}

#[test]
fn every_variable_is_read() {
    let (options, warnings) = parse(&[
        ("COPYTUNE", "0"),
        ("COPYTUNE_MODE", "Dry-Run"),
        ("COPYTUNE_DIR", "/some/where"),
        ("COPYTUNE_INTERVALS", "none"),
        ("COPYTUNE_SEED", "18446744073709551615"),
        ("COPYTUNE_STRATEGY", "quench"),
        ("COPYTUNE_ROUTINES", "li*, libc"),
        ("COPYTUNE_ROUTINE", "libc"),
        ("COPYTUNE_MIN_BYTES", "4k"),
        ("COPYTUNE_DIRECT", "force"),
        ("COPYTUNE_BUDGET", "off"),
        ("COPYTUNE_MODEL", "off"),
        ("COPYTUNE_KEEP", "off"),
        ("COPYTUNE_LOG", "debug"),
        ("COPYTUNE_CPU_MASK", "avx2"),
    ]);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(
        options,
        Options {
            enabled: false,
            mode: Mode::DryRun,
            dir: Some("/some/where".into()),
            intervals: Intervals::Detected,
            seed: u64::MAX,
            strategy: "quench",
            routines: vec!["li*".into(), "libc".into()],
            routine: crate::routines::forced::Forcing::parse("libc"),
            min_bytes: 4096,
            direct: Direct::Force,
            bounded: false,
            model: false,
            keep: false,
            log: Log::Debug,
            cpu_mask: Some("avx2".into()),
        }
    );
}

#[test]
fn a_wrong_value_names_variable_value_and_what_is_allowed() {
    for (name, value) in [
        ("COPYTUNE", "maybe"),
        ("COPYTUNE_MODE", "fast"),
        ("COPYTUNE_SEED", "-1"),
        ("COPYTUNE_STRATEGY", "luck"),
        ("COPYTUNE_ROUTINES", "libc,nosuch*"),
        ("COPYTUNE_ROUTINE", "li*"),
        ("COPYTUNE_MIN_BYTES", "99999999999999999G"),
        ("COPYTUNE_BUDGET", "2%"),
        ("COPYTUNE_MODEL", "maybe"),
        ("COPYTUNE_KEEP", "some"),
        ("COPYTUNE_LOG", "loud"),
        ("COPYTUNE_CPU_MASK", "avx2,mmx"),
    ] {
        let (options, warnings) = parse(&[(name, value)]);
        assert_eq!(options, Options::default(), "{name}");
        let variable = variables().iter().find(|v| v.name == name).unwrap();
        assert_eq!(warnings.len(), 1, "{name}");
        for part in [name, value, &variable.allowed(), variable.default] {
            assert!(warnings[0].contains(part), "{part} in {}", warnings[0]);
        }
    }
}

#[test]
fn non_utf8_and_control_characters_stay_on_one_line() {
    let value = OsString::from_vec(b"\xff\n\x1b[31m".to_vec());
    let (_, warnings) =
        Options::from_lookup(&|name| (name == "COPYTUNE_MODE").then(|| value.clone()));
    assert_eq!(warnings.len(), 1);
    assert!(!warnings[0].contains('\n') && !warnings[0].contains('\x1b'));
}

#[test]
fn the_state_directory_follows_xdg() {
    let dir = |pairs: &[(&str, &str)]| parse(pairs).0.dir;
    let home = ("HOME", "/h");
    assert_eq!(dir(&[home]), Some("/h/.local/state/copytune".into()));
    assert_eq!(
        dir(&[home, ("XDG_STATE_HOME", "/x")]),
        Some("/x/copytune".into())
    );
    assert_eq!(
        dir(&[home, ("XDG_STATE_HOME", "relative")]),
        Some("/h/.local/state/copytune".into())
    );
    assert_eq!(dir(&[home, ("COPYTUNE_DIR", "/d")]), Some("/d".into()));
    assert_eq!(
        dir(&[home, ("COPYTUNE_DIR", "")]),
        Some("/h/.local/state/copytune".into())
    );
    assert!(dir(&[("COPYTUNE_DIR", "here")]).unwrap().is_absolute());
}

#[test]
fn sizes_take_suffixes() {
    for (text, bytes) in [
        ("0", 0),
        ("1024", 1024),
        ("4k", 4096),
        ("4 KiB", 4096),
        ("1M", 1 << 20),
        ("2g", 2 << 30),
        ("17B", 17),
    ] {
        assert_eq!(parse_bytes(text), Some(bytes), "{text}");
    }
    for text in ["", "k", "-1", "1.5k", "4q", "0x10", "18446744073709551616"] {
        assert_eq!(parse_bytes(text), None, "{text}");
    }
}

#[test]
fn unknown_variables_are_named_with_the_nearest() {
    let names = [
        "COPYTUNE_MOD",
        "PATH",
        "COPYTUNE_LOG",
        "COPYTUNE_TEST_SEED",
        "COPYTUNE_LIB",
        "COPYTUNE_DRI",
    ];
    let lines = unknown_variables(names.map(OsString::from));
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("COPYTUNE_DRI") && lines[0].contains("COPYTUNE_DIR"));
    assert!(lines[1].contains("COPYTUNE_MOD:") && lines[1].contains("COPYTUNE_MODE"));
}

#[test]
fn the_documentation_holds_every_variable_and_fits_the_defaults() {
    let text = documentation();
    for variable in variables() {
        assert!(text.contains(variable.name) && text.contains(&variable.allowed()));
    }
    for (name, about) in COMMAND_VARIABLES {
        assert!(text.contains(name) && text.contains(about));
    }
    // Where the default is a value, giving it must change nothing.
    for name in [
        "COPYTUNE",
        "COPYTUNE_MODE",
        "COPYTUNE_SEED",
        "COPYTUNE_STRATEGY",
        "COPYTUNE_MIN_BYTES",
        "COPYTUNE_LOG",
    ] {
        let variable = variables().iter().find(|v| v.name == name).unwrap();
        assert_eq!(
            parse(&[(name, variable.default)]),
            (Options::default(), Vec::new())
        );
    }
}

/// The oracle: matches by trying every split at a star.
fn naive_glob(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|i| naive_glob(rest, &name[i..])),
        Some((c, rest)) => name
            .split_first()
            .is_some_and(|(n, tail)| (*c == b'?' || c == n) && naive_glob(rest, tail)),
    }
}

proptest! {
    #[test]
    fn globs_match_like_the_naive_matcher(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
        prop_assert_eq!(glob_matches(&pattern, &name), naive_glob(pattern.as_bytes(), name.as_bytes()));
    }

    #[test]
    fn no_value_panics(which in 0..variables().len(), bytes in proptest::collection::vec(1u8.., 0..40)) {
        let name = variables()[which].name;
        let value = OsString::from_vec(bytes);
        let (_, warnings) = Options::from_lookup(&|n| (n == name).then(|| value.clone()));
        prop_assert!(warnings.len() <= 1);
    }
}
