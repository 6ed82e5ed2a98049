//! How libraries copy a message in and out of memory that both ends map: piece by piece.

/// Bytes of Open MPI's, a fragment (`btl_vader_max_send_size`, ompi_info(1)), and of MPICH's UCX, a segment (`UCX_POSIX_SEG_SIZE`, ucx_info(1)),
/// by default.
pub const SIZES: [u64; 2] = [32 << 10, 8 << 10];

/// That of the library of this name.
pub fn size(library: &str) -> u64 {
    match library.starts_with("Open MPI") {
        true => SIZES[0],
        false => SIZES[1],
    }
}
