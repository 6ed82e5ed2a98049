//! The settings by which a library copies otherwise.

use crate::state::ways::Times;

/// A setting of the library.
pub(super) struct Knob {
    pub(super) way: &'static str,
    pub(super) times: fn(&Times) -> &[f64],
    /// How to set it, for messages up to so many bytes.
    pub(super) text: fn(u64) -> String,
    /// Whether longer messages stay as they are.
    pub(super) is_bounded: bool,
}

/// Names of the ways.
pub(super) const USER: &str = "copies in user space";
pub(super) const EAGER: &str = "eager messages";

const OPEN_MPI_4_USER: &str =
    "mpirun --mca btl_vader_single_copy_mechanism none (with pml ucx: UCX_RNDV_THRESH=inf)";
const OPEN_MPI_USER: &str = "mpirun --mca smsc ^cma (with pml ucx: UCX_RNDV_THRESH=inf)";

/// The version is the library's own text: "Open MPI v4.1.4".
fn is_open_mpi_4(mpi: &str) -> bool {
    mpi.strip_prefix("Open MPI ")
        .is_some_and(|version| version.trim_start_matches('v').starts_with("4."))
}

/// The setting with which the library copies messages of all sizes in user space.
pub fn user_space_knob(mpi: &str) -> &'static str {
    match mpi.starts_with("Open MPI ") {
        true if is_open_mpi_4(mpi) => OPEN_MPI_4_USER,
        true => OPEN_MPI_USER,
        false => "UCX_RNDV_THRESH=inf",
    }
}

/// Open MPI counts its header of at most 64 bytes among the bytes of an eager message (pml ob1), and cannot have them
/// longer than the pieces of long ones.
pub fn open_mpi_eager(longest: u64) -> [(&'static str, u64); 2] {
    let limit = longest + 64;
    [
        ("btl_vader_eager_limit", limit),
        ("btl_vader_max_send_size", limit.max(32 << 10)),
    ]
}

/// The settings of a library, by the version that it tells.
pub(super) fn knobs(mpi: &str) -> Vec<Knob> {
    let user = |text: fn(u64) -> String, is_bounded| Knob {
        way: USER,
        times: |times| &times.user,
        text,
        is_bounded,
    };
    if !mpi.starts_with("Open MPI ") {
        // In UCX messages below the threshold are eager, and copied in user space.
        return vec![user(
            |longest| format!("UCX_RNDV_THRESH={}", longest + 1),
            true,
        )];
    }
    let eager = Knob {
        way: EAGER,
        times: |times| &times.eager,
        text: |longest| {
            let settings =
                open_mpi_eager(longest).map(|(name, value)| format!("--mca {name} {value}"));
            format!("mpirun {}", settings.join(" "))
        },
        is_bounded: true,
    };
    let whole = match is_open_mpi_4(mpi) {
        true => user(|_| OPEN_MPI_4_USER.to_owned(), false),
        false => user(|_| OPEN_MPI_USER.to_owned(), false),
    };
    vec![eager, whole]
}
