! Known numbers of calls through `mpif.h`.
program counted_mpif
  implicit none
  include 'mpif.h'
#include "counted_body.inc"
end program counted_mpif
