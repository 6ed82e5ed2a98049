use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn variables() -> Vec<Variable> {
    let variable = |name: &str, value: &str, own| Variable {
        name: name.to_owned(),
        value: value.into(),
        own,
    };
    vec![
        variable("LD_PRELOAD", "/ours.so", Own::Behind),
        variable("COPYTUNE_MODE", "replay", Own::Replaced),
    ]
}

/// The line with the variables, where the environment has these.
fn passed(family: Family, line: &str, environment: &[(&str, &str)]) -> Result<String, String> {
    let lookup = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    };
    let passed = pass(family, &words(line), &variables(), &lookup)?;
    let passed = passed.join(OsStr::new(" "));
    Ok(passed.into_string().expect("text"))
}

#[test]
fn each_family_gets_the_variables_in_its_own_way() {
    for (family, line, expected) in [
        (
            Family::OpenMpi,
            "-np 4 ./p -x LD_PRELOAD=/its.so",
            "-x LD_PRELOAD=/ours.so -x COPYTUNE_MODE=replay -np 4 ./p -x LD_PRELOAD=/its.so",
        ),
        (
            Family::OpenMpi,
            "-n 1 a : -n 1 b",
            "-x LD_PRELOAD=/ours.so -x COPYTUNE_MODE=replay -n 1 a : -x LD_PRELOAD=/ours.so -x COPYTUNE_MODE=replay -n 1 b",
        ),
        (
            Family::Hydra,
            "-n 1 a : -n 1 b",
            "-genv LD_PRELOAD /ours.so -genv COPYTUNE_MODE replay -n 1 a : -n 1 b",
        ),
        (
            Family::Slurm,
            "-n 4 ./p",
            "--export=ALL,LD_PRELOAD=/ours.so,COPYTUNE_MODE=replay -n 4 ./p",
        ),
        (
            Family::Slurm,
            "a : b",
            "--export=ALL,LD_PRELOAD=/ours.so,COPYTUNE_MODE=replay a : --export=ALL,LD_PRELOAD=/ours.so,COPYTUNE_MODE=replay b",
        ),
    ] {
        assert_eq!(passed(family, line, &[]).as_deref(), Ok(expected), "{line}");
    }
}

#[test]
fn a_library_of_the_users_own_stays_behind_ours() {
    let environment = [("LD_PRELOAD", "/env.so")];
    for (family, line, expected) in [
        (
            Family::OpenMpi,
            "./p",
            "-x LD_PRELOAD=/ours.so:/env.so -x COPYTUNE_MODE=replay ./p",
        ),
        (
            Family::OpenMpi,
            "-x LD_PRELOAD=/own.so --x COPYTUNE_MODE=tune ./p",
            "-x LD_PRELOAD=/ours.so:/own.so --x COPYTUNE_MODE=replay ./p",
        ),
        (
            Family::OpenMpi,
            "-x LD_PRELOAD ./p",
            "-x COPYTUNE_MODE=replay -x LD_PRELOAD=/ours.so:/env.so ./p",
        ),
        (
            Family::Hydra,
            "./p",
            "-genv LD_PRELOAD /ours.so:/env.so -genv COPYTUNE_MODE replay ./p",
        ),
        (
            Family::Hydra,
            "-genvnone ./p",
            "-genv LD_PRELOAD /ours.so -genv COPYTUNE_MODE replay -genvnone ./p",
        ),
        (
            Family::Hydra,
            "-genv LD_PRELOAD /own.so a : -env LD_PRELOAD /other.so b",
            "-genv COPYTUNE_MODE replay -genv LD_PRELOAD /ours.so:/own.so a : -env LD_PRELOAD /ours.so:/other.so b",
        ),
        (
            Family::Slurm,
            "./p",
            "--export=ALL,LD_PRELOAD=/ours.so:/env.so,COPYTUNE_MODE=replay ./p",
        ),
    ] {
        let found = passed(family, line, &environment);
        assert_eq!(found.as_deref(), Ok(expected), "{line}");
    }
    let again = [("LD_PRELOAD", "/a.so /ours.so:/b.so")];
    assert_eq!(
        passed(Family::Hydra, "p", &again).as_deref(),
        Ok("-genv LD_PRELOAD /ours.so:/a.so:/b.so -genv COPYTUNE_MODE replay p")
    );
}

#[test]
fn an_export_of_the_users_own_is_kept() {
    let environment = [("LD_PRELOAD", "/env.so")];
    for (line, expected) in [
        ("--export=NONE p", "LD_PRELOAD=/ours.so"),
        ("--export nil p", "LD_PRELOAD=/ours.so"),
        ("--export=A=1,B p", "A=1,B,LD_PRELOAD=/ours.so"),
        (
            "--export=ALL,A='x,y' p",
            "ALL,A='x,y',LD_PRELOAD=/ours.so:/env.so",
        ),
        (
            "--export=A,LD_PRELOAD,COPYTUNE_MODE=tune p",
            "A,LD_PRELOAD=/ours.so:/env.so",
        ),
        (
            "--export=LD_PRELOAD=/own.so p",
            "LD_PRELOAD=/ours.so:/own.so",
        ),
    ] {
        let expected = format!("--export={expected},COPYTUNE_MODE=replay p");
        assert_eq!(
            passed(Family::Slurm, line, &environment),
            Ok(expected),
            "{line}"
        );
    }
    let batch = [("SLURM_EXPORT_ENV", "NONE")];
    assert_eq!(
        passed(Family::Slurm, "p", &batch).as_deref(),
        Ok("--export=LD_PRELOAD=/ours.so,COPYTUNE_MODE=replay p")
    );
}

#[test]
fn what_a_launcher_cannot_take_is_said() {
    let list = "--mca mca_base_env_list A=1 p";
    let said = passed(Family::OpenMpi, list, &[]).expect_err("not both");
    assert!(said.contains("-x NAME=VALUE"), "{said}");
    let list = [("OMPI_MCA_mca_base_env_list", "A=1")];
    assert!(passed(Family::OpenMpi, "p", &list).is_err());
    let comma = [("LD_PRELOAD", "/a,b.so")];
    let said = passed(Family::Slurm, "p", &comma).expect_err("a comma");
    assert!(said.contains("/a,b.so"), "{said}");
}

#[test]
fn quoted_words_are_the_same_words_to_a_shell() {
    let words = [
        "plain/path-1.so",
        "",
        "a b",
        "it's",
        "$HOME `x` \"y\" \\",
        "a;b|c&*?",
        "ä\nb",
        "~",
    ];
    let line = words
        .map(|word| quoted(OsStr::new(word)))
        .join(OsStr::new(" "));
    let mut script = OsString::from("printf '%s\\0' ");
    script.push(line);
    let shell = std::process::Command::new("sh")
        .arg("-c")
        .arg(script)
        .output();
    let said = shell.expect("there is a shell").stdout;
    let said = String::from_utf8(said).expect("text");
    assert_eq!(said, words.map(|word| format!("{word}\0")).concat());
}
