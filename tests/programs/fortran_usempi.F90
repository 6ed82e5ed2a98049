! Fortran through the module `mpi`.
program fortran_usempi
  use mpi
  implicit none
#include "fortran_body.inc"
end program fortran_usempi
