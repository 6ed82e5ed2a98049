//! The settings of MPI libraries that are tuned: which there are, how each is set, and what is tried of it.
//!
//! Whether an installed library has one, and what it is set to, is read from the library ([`super::library`]); a setting that it does not
//! have is not tuned. The order is that in which settings are given up where the time is short: first what changes how messages are copied.

/// How a setting is set for the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A parameter of Open MPI: the variable is its name behind `OMPI_MCA_`.
    OpenMpi,
    /// A variable of UCX, by its own name.
    Ucx,
    /// A control variable of MPICH, by its own name.
    Mpich,
}

/// Where a setting does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// In Open MPI, unless UCX carries its messages.
    OpenMpi,
    /// Where UCX carries the messages.
    Ucx,
    /// In an MPICH whose device has this in its name.
    Device(&'static str),
}

/// What is tried.
#[derive(Debug, Clone, Copy)]
pub enum Candidates {
    /// Numbers: what it is set to, times the first over the second.
    Times(&'static [(u64, u64)]),
    /// Words, as far as the library has them.
    Words(&'static [&'static str]),
}

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// What it is called; the first name that the library has counts, since versions differ.
    pub names: &'static [&'static str],
    /// How it is set.
    pub source: Source,
    /// Where it does something.
    pub used: Use,
    /// What is tried.
    pub candidates: Candidates,
    /// Another setting that must not be less than this one, and is raised with it.
    pub room: &'static [&'static str],
    /// What it changes.
    pub reason: &'static str,
}

impl Source {
    /// The environment variable that sets the setting of that name.
    pub fn variable(self, name: &str) -> String {
        match self {
            Source::OpenMpi => format!("OMPI_MCA_{name}"),
            Source::Ucx | Source::Mpich => name.to_owned(),
        }
    }
}

/// The parameter of Open MPI that says what carries its messages.
pub const CARRIER: &str = "pml";

const FRAGMENT: &[&str] = &["btl_vader_max_send_size", "btl_sm_max_send_size"];

/// All of them. Sources: the libraries' own descriptions (`ompi_info --all`, `ucx_info -cf`, `mpivars`), and their code where a
/// description leaves out what limits what.
pub const SETTINGS: &[Setting] = &[
    Setting {
        names: &["btl_vader_single_copy_mechanism"],
        source: Source::OpenMpi,
        used: Use::OpenMpi,
        candidates: Candidates::Words(&["none", "xpmem", "knem", "cma"]),
        room: &[],
        reason: "who copies long messages: the kernel, or both sides through shared memory",
    },
    Setting {
        names: &["smsc"],
        source: Source::OpenMpi,
        used: Use::OpenMpi,
        candidates: Candidates::Words(&["^cma", "xpmem", "knem"]),
        room: &[],
        reason: "who copies long messages, since Open MPI 5",
    },
    Setting {
        names: &["btl_vader_eager_limit", "btl_sm_eager_limit"],
        source: Source::OpenMpi,
        used: Use::OpenMpi,
        candidates: Candidates::Times(&[(4, 1), (8, 1), (16, 1)]),
        room: FRAGMENT,
        reason: "up to which length a message is sent before its receiver asks for it",
    },
    Setting {
        names: FRAGMENT,
        source: Source::OpenMpi,
        used: Use::OpenMpi,
        candidates: Candidates::Times(&[(2, 1), (4, 1)]),
        room: &[],
        reason: "in which pieces a long message goes through shared memory",
    },
    Setting {
        names: &["btl_vader_rndv_eager_limit", "btl_sm_rndv_eager_limit"],
        source: Source::OpenMpi,
        used: Use::OpenMpi,
        candidates: Candidates::Times(&[(1, 8), (2, 1)]),
        room: FRAGMENT,
        reason: "how much of a long message goes along with its announcement",
    },
    Setting {
        names: &["pml_ob1_send_pipeline_depth"],
        source: Source::OpenMpi,
        used: Use::OpenMpi,
        candidates: Candidates::Times(&[(3, 1)]),
        room: &[],
        reason: "how many pieces of a long message are under way at once",
    },
    Setting {
        names: &["btl_vader_fbox_size", "btl_sm_fbox_size"],
        source: Source::OpenMpi,
        used: Use::OpenMpi,
        candidates: Candidates::Times(&[(4, 1)]),
        room: &[],
        reason: "the buffer of each pair of ranks for short messages",
    },
    Setting {
        names: &["btl_vader_fbox_threshold", "btl_sm_fbox_threshold"],
        source: Source::OpenMpi,
        used: Use::OpenMpi,
        candidates: Candidates::Times(&[(1, 16)]),
        room: &[],
        reason: "after how many messages a pair of ranks gets that buffer",
    },
    Setting {
        names: &["UCX_RNDV_THRESH"],
        source: Source::Ucx,
        used: Use::Ucx,
        candidates: Candidates::Words(&["4k", "16k", "64k", "256k", "inf"]),
        room: &[],
        reason: "from which length on a message waits for its receiver and is copied once",
    },
    Setting {
        names: &["UCX_RNDV_SCHEME"],
        source: Source::Ucx,
        used: Use::Ucx,
        candidates: Candidates::Words(&["get_zcopy", "put_zcopy", "am"]),
        room: &[],
        reason: "which side copies such a message",
    },
    Setting {
        names: &["UCX_TLS"],
        source: Source::Ucx,
        used: Use::Ucx,
        candidates: Candidates::Words(&["^cma"]),
        room: &[],
        reason: "whether the kernel may copy",
    },
    Setting {
        names: &["UCX_ZCOPY_THRESH"],
        source: Source::Ucx,
        used: Use::Ucx,
        candidates: Candidates::Words(&["16k", "inf"]),
        room: &[],
        reason: "from which length on a message is sent from where it lies",
    },
    Setting {
        names: &["MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE"],
        source: Source::Mpich,
        used: Use::Device("ch4:ofi"),
        candidates: Candidates::Times(&[(2, 1), (4, 1)]),
        room: &["MPIR_CVAR_CH4_AM_PACK_BUFFER_SIZE"],
        reason: "in which pieces messages go through shared memory",
    },
    Setting {
        names: &["MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE"],
        source: Source::Mpich,
        used: Use::Device("ch4:ofi"),
        candidates: Candidates::Words(&["16384", "65536"]),
        room: &[],
        reason: "up to which length a message is sent before its receiver asks for it",
    },
    Setting {
        names: &["MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ"],
        source: Source::Mpich,
        used: Use::Device("ch3"),
        candidates: Candidates::Words(&["16384", "65536", "262144"]),
        room: &[],
        reason: "up to which length a message is sent before its receiver asks for it",
    },
    Setting {
        names: &["MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE"],
        source: Source::Mpich,
        used: Use::Device("ch3"),
        candidates: Candidates::Times(&[(1, 4), (4, 1)]),
        room: &[],
        reason: "the same where nothing else says it",
    },
];

/// The names that are read from a library.
pub fn names() -> impl Iterator<Item = &'static str> {
    let of = |setting: &'static Setting| setting.names.iter().chain(setting.room).copied();
    SETTINGS.iter().flat_map(of).chain([CARRIER])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_their_source_has() {
        let mut seen = Vec::new();
        for setting in SETTINGS {
            for name in setting.names {
                let is_of = match setting.source {
                    Source::Ucx => name.starts_with("UCX_"),
                    Source::Mpich => name.starts_with("MPIR_CVAR_"),
                    Source::OpenMpi => name.chars().all(|c| !c.is_ascii_uppercase()),
                };
                assert!(is_of && !seen.contains(name), "{name}");
                seen.push(name);
            }
            let has_candidates = match setting.candidates {
                Candidates::Times(times) => times.iter().all(|(by, over)| by != over && *over > 0),
                Candidates::Words(words) => !words.is_empty(),
            };
            assert!(has_candidates && !setting.reason.is_empty(), "{setting:?}");
            assert!(
                setting
                    .room
                    .iter()
                    .all(|room| !setting.names.contains(room))
            );
        }
        assert_eq!(Source::OpenMpi.variable("a"), "OMPI_MCA_a");
        assert_eq!(Source::Ucx.variable("UCX_A"), "UCX_A");
        assert!(names().any(|name| name == CARRIER));
    }
}
