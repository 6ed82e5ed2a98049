//! What is searched: for each setting that a library has what is tried of it, and from a configuration to the variables that make it.

use super::catalogue::{CARRIER, Candidates, SETTINGS, Setting, Source, Use};
use super::library::{Library, Value};
use crate::state::settings::Chosen;
use std::collections::BTreeMap;

/// A setting with its choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunable {
    /// Its name in the library.
    pub name: String,
    /// The variable that sets it.
    pub variable: String,
    /// What it is set to by default: choice 0.
    pub current: String,
    /// Choices 1 and following.
    pub choices: Vec<String>,
    /// The variable that must not be less, and what it is by default.
    pub room: Option<(String, u64)>,
}

/// All settings that are tuned, and what is said about those that are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Space {
    /// One for each variable of a configuration.
    pub tunables: Vec<Tunable>,
    /// Sentences.
    pub notes: Vec<String>,
}

/// A choice of one setting: which, and which choice.
pub type Single = (usize, u16);

/// Whether Open MPI has UCX carry its messages, by its parameter `pml`: a list of names, or of those that are excluded behind `^`.
fn is_ucx(carrier: &str) -> bool {
    !carrier.starts_with('^') && carrier.split(',').any(|name| name == "ucx")
}

impl Space {
    /// Of a library; `own` has what the user sets a variable to.
    pub fn of(library: &Library, own: &dyn Fn(&str) -> Option<String>) -> Space {
        let carrier = own(&Source::OpenMpi.variable(CARRIER));
        let carrier = carrier.or_else(|| Some(library.values.get(CARRIER)?.current.clone()));
        let by_ucx = is_ucx(&carrier.unwrap_or_default()) || library.device.contains("ucx");
        let is_used = |setting: &Setting| match setting.used {
            Use::OpenMpi => !by_ucx,
            Use::Ucx => by_ucx,
            Use::Device(part) => library.device.contains(part),
        };
        let mut space = Space::default();
        for setting in SETTINGS.iter().filter(|setting| is_used(setting)) {
            let Some(tunable) = tunable(setting, &library.values) else {
                continue;
            };
            let room = tunable.room.iter().map(|(variable, _)| variable);
            let fixed = std::iter::once(&tunable.variable)
                .chain(room)
                .find_map(|variable| Some((variable, own(variable)?)));
            match fixed {
                Some((variable, value)) => space.notes.push(format!(
                    "{} is left alone: you set {variable} to {value}.",
                    tunable.name
                )),
                None => space.tunables.push(tunable),
            }
        }
        space
    }

    /// The number of choices of each setting, the default among them.
    pub fn choices(&self) -> Vec<u16> {
        let all = self.tunables.iter();
        all.map(|tunable| 1 + tunable.choices.len() as u16)
            .collect()
    }

    /// The choices besides the default, each alone: the first of each setting, then the second of each, and so on, so that what is
    /// left out at the end leaves no setting out altogether.
    pub fn singles(&self) -> Vec<Single> {
        let most = self.choices().into_iter().max().unwrap_or(1);
        let of_round = |choice: u16| {
            let all = self.choices().into_iter().enumerate();
            all.filter_map(move |(setting, choices)| {
                (choice < choices).then_some((setting, choice))
            })
        };
        (1..most).flat_map(of_round).collect()
    }

    /// The configuration in which one setting is not as by default.
    pub fn configuration(&self, (setting, choice): Single) -> Vec<u16> {
        let mut choices = vec![0; self.tunables.len()];
        if let Some(place) = choices.get_mut(setting) {
            *place = choice;
        }
        choices
    }

    /// What a configuration sets, setting by setting, each with all variables that it needs.
    pub fn chosen(&self, configuration: &[u16]) -> Vec<Chosen> {
        let chosen = || {
            let both = self.tunables.iter().zip(configuration);
            both.filter_map(|(tunable, &choice)| {
                let value = tunable.choices.get(usize::from(choice).checked_sub(1)?)?;
                Some((tunable, value))
            })
        };
        // What must not be less than another is as great as the greatest asks.
        let mut least: BTreeMap<&str, u64> = BTreeMap::new();
        for (tunable, value) in chosen() {
            if let Some((room, by_default)) = &tunable.room {
                let own = chosen().find(|(other, _)| other.variable == *room);
                let own = own.map_or(Some(*by_default), |(_, value)| value.parse().ok());
                let entry = least.entry(room).or_insert(own.unwrap_or(*by_default));
                *entry = value.parse().map_or(*entry, |value: u64| value.max(*entry));
            }
        }
        let of = |(tunable, value): (&Tunable, &String)| {
            let raised = least.get(&*tunable.variable).map(u64::to_string);
            let value = raised.unwrap_or_else(|| value.clone());
            let mut variables = vec![(tunable.variable.clone(), value.clone())];
            if let Some((room, by_default)) = &tunable.room
                && let Some(least) = least.get(&**room).filter(|least| *least != by_default)
            {
                variables.push((room.clone(), least.to_string()));
            }
            Chosen {
                name: tunable.name.clone(),
                value,
                variables,
            }
        };
        chosen().map(of).collect()
    }

    /// A configuration in words.
    pub fn words(&self, configuration: &[u16]) -> String {
        words(&self.chosen(configuration))
    }
}

/// Settings in words: `name=value`, with commas.
pub fn words(chosen: &[Chosen]) -> String {
    let all: Vec<String> = chosen
        .iter()
        .map(|setting| format!("{}={}", setting.name, setting.value))
        .collect();
    match all.is_empty() {
        true => "the default".to_owned(),
        false => all.join(", "),
    }
}

/// The variables that make these choices, each once.
pub fn variables(chosen: &[Chosen]) -> Vec<(String, String)> {
    let all = chosen
        .iter()
        .flat_map(|setting| setting.variables.iter().cloned());
    let unique: BTreeMap<String, String> = all.collect();
    unique.into_iter().collect()
}

/// A setting as the library has it; `None` where it has none, or nothing to try.
fn tunable(setting: &Setting, values: &BTreeMap<String, Value>) -> Option<Tunable> {
    let has = |names: &'static [&'static str]| {
        names
            .iter()
            .find_map(|name| Some((*name, values.get(*name)?)))
    };
    let (name, value) = has(setting.names)?;
    let choices: Vec<String> = match setting.candidates {
        Candidates::Words(words) => {
            let is_known = |word: &&str| {
                value.words.is_empty() || value.words.iter().any(|known| known == word)
            };
            let others = words.iter().filter(|word| **word != value.current);
            others
                .filter(|word| is_known(word))
                .map(|&word| word.to_owned())
                .collect()
        }
        Candidates::Times(times) => {
            let current: u64 = value.current.parse().ok()?;
            let scaled = |&(by, over): &(u64, u64)| Some(current.checked_mul(by)? / over);
            let numbers = times.iter().filter_map(scaled);
            let numbers = numbers.filter(|&number| number > 0 && number != current);
            numbers.map(|number| number.to_string()).collect()
        }
    };
    let room = has(setting.room).and_then(|(name, value)| {
        Some((setting.source.variable(name), value.current.parse().ok()?))
    });
    (!choices.is_empty()).then(|| Tunable {
        name: name.to_owned(),
        variable: setting.source.variable(name),
        current: value.current.clone(),
        choices,
        room,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What Debian's Open MPI 4.1.4 and MPICH 4.0.2 tell of themselves.
    pub(in super::super) fn libraries() -> [Library; 2] {
        let text = include_str!("libraries.json");
        let mut read = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("as it was read"));
        [(); 2].map(|()| read.next().expect("a line for each"))
    }

    fn nothing(_: &str) -> Option<String> {
        None
    }

    fn names(space: &Space) -> Vec<&str> {
        space
            .tunables
            .iter()
            .map(|tunable| &*tunable.name)
            .collect()
    }

    #[test]
    fn each_library_is_tuned_by_what_carries_its_messages() {
        let [open_mpi, mpich] = libraries();
        let own = Space::of(&open_mpi, &nothing);
        assert!(names(&own).contains(&"btl_vader_eager_limit"), "{own:?}");
        assert!(names(&own).iter().all(|name| !name.starts_with("UCX_")));
        let by_ucx = |name: &str| (name == "OMPI_MCA_pml").then(|| "ucx".to_owned());
        let ucx = Space::of(&open_mpi, &by_ucx);
        assert!(names(&ucx).iter().all(|name| name.starts_with("UCX_")));
        assert_eq!(names(&Space::of(&mpich, &nothing)), names(&ucx));
        assert!(names(&ucx).contains(&"UCX_RNDV_THRESH"));
        assert!(is_ucx("ob1,ucx") && !is_ucx("^ucx") && !is_ucx("ob1") && !is_ucx(""));
    }

    #[test]
    fn what_is_tried_is_another_value_than_the_default() {
        for library in libraries() {
            let space = Space::of(&library, &nothing);
            for tunable in &space.tunables {
                assert!(!tunable.choices.contains(&tunable.current), "{tunable:?}");
            }
            let singles = space.singles();
            let choices: usize = space.choices().iter().map(|&n| usize::from(n) - 1).sum();
            assert_eq!(singles.len(), choices);
            assert!(
                singles[..space.tunables.len()]
                    .iter()
                    .all(|(_, choice)| *choice == 1)
            );
            for single in singles {
                assert_eq!(space.chosen(&space.configuration(single)).len(), 1);
            }
        }
        let [open_mpi, _] = libraries();
        let space = Space::of(&open_mpi, &nothing);
        let copies = &space.tunables[0];
        assert_eq!(
            (&*copies.current, &copies.choices[..]),
            ("cma", &["none".to_owned()][..])
        );
    }

    #[test]
    fn pieces_grow_with_what_must_fit_into_them() {
        let [open_mpi, _] = libraries();
        let space = Space::of(&open_mpi, &nothing);
        let place = |name: &str| names(&space).iter().position(|it| *it == name).expect(name);
        let (eager, pieces) = (
            place("btl_vader_eager_limit"),
            place("btl_vader_max_send_size"),
        );
        let mut configuration = space.configuration((eager, 3));
        let variables_of = |configuration: &[u16]| variables(&space.chosen(configuration));
        let pair = |name: &str, value: &str| (format!("OMPI_MCA_{name}"), value.to_owned());
        let (limit, raised) = (
            pair("btl_vader_eager_limit", "65536"),
            pair("btl_vader_max_send_size", "65536"),
        );
        assert_eq!(
            variables_of(&configuration),
            [limit.clone(), raised.clone()]
        );
        assert_eq!(space.words(&configuration), "btl_vader_eager_limit=65536");
        configuration[pieces] = 2;
        let more = pair("btl_vader_max_send_size", "131072");
        assert_eq!(variables_of(&configuration), [limit.clone(), more]);
        configuration[pieces] = 1;
        assert_eq!(variables_of(&configuration), [limit, raised]);
        // An eager limit that fits needs nothing.
        assert_eq!(
            variables_of(&space.configuration((eager, 1))),
            [pair("btl_vader_eager_limit", "16384")]
        );
        assert_eq!(
            (variables_of(&[0; 9]), space.words(&[0])),
            (vec![], "the default".to_owned())
        );
    }

    #[test]
    fn what_the_user_sets_is_left_alone() {
        let [open_mpi, _] = libraries();
        let own =
            |name: &str| (name == "OMPI_MCA_btl_vader_max_send_size").then(|| "1000".to_owned());
        let space = Space::of(&open_mpi, &own);
        // Neither the setting itself nor those that would raise it.
        for name in [
            "btl_vader_max_send_size",
            "btl_vader_eager_limit",
            "btl_vader_rndv_eager_limit",
        ] {
            assert!(!names(&space).contains(&name), "{name}");
            assert!(
                space.notes.iter().any(|note| note.starts_with(name)),
                "{:?}",
                space.notes
            );
        }
        assert!(!space.tunables.is_empty());
    }
}
