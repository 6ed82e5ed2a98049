//! How an MPI library's version is written: the same in states, in reports and for settings.

/// Longer texts are cut.
const LONGEST: usize = 80;

/// Name and version on one line, from what MPI_Get_library_version tells. Open MPI lists more behind commas ("Open MPI v4.1.4, package:
/// ..."); MPICH has "MPICH Version:      4.0.2" in its first line.
pub fn short(text: &str, is_open_mpi: bool) -> String {
    let name = match is_open_mpi {
        true => text.split(',').next(),
        false => text.lines().next(),
    };
    let name = name.unwrap_or("").replace(" Version:", "");
    let cut: String = name.chars().take(LONGEST).collect();
    cut.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_one_short_line() {
        let open = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, May 26, 2022";
        assert_eq!(short(open, true), "Open MPI v4.1.4");
        let mpich = "MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7 12:34:45 CDT 2022\n";
        assert_eq!(short(mpich, false), "MPICH 4.0.2");
        assert_eq!(short("", false), "");
        assert_eq!(short(&"é".repeat(200), false).chars().count(), LONGEST);
    }
}
