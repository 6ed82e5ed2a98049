! Known numbers of calls through the module `mpi_f08`.
#define F08
program counted_f08
  use mpi_f08
  implicit none
#include "counted_body.inc"
end program counted_f08
