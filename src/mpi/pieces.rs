//! How libraries copy a message in and out of memory that both ends map: piece by piece, through places that are used again and again.

/// What is copied at once, and through how much memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    /// Bytes of one.
    pub size: u64,
    /// Bytes of the places that a long message goes through, before it comes to the first of them again.
    pub ring: u64,
}

/// Open MPI's by default: a fragment (`btl_vader_max_send_size`), of which three are under way (`pml_ob1_send_pipeline_depth`, ompi_info(1)).
const OPEN_MPI: Pieces = Pieces {
    size: 32 << 10,
    ring: 96 << 10,
};

/// MPICH's, by UCX: a segment (`UCX_POSIX_SEG_SIZE`), of which there are 256 (`UCX_POSIX_FIFO_SIZE`, ucx_info(1)).
const MPICH: Pieces = Pieces {
    size: 8 << 10,
    ring: 2 << 20,
};

impl Pieces {
    /// All that are known.
    pub const ALL: [Pieces; 2] = [OPEN_MPI, MPICH];

    /// Those of the library of this name.
    pub fn of(library: &str) -> Pieces {
        match library.starts_with("Open MPI") {
            true => OPEN_MPI,
            false => MPICH,
        }
    }
}
