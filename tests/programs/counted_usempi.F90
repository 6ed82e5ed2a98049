! Known numbers of calls through the module `mpi`.
program counted_usempi
  use mpi
  implicit none
#include "counted_body.inc"
end program counted_usempi
