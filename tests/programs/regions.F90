! Regions that a Fortran program marks (include/copytune.f90), the same way as regions.c does with "tuned".
#include "../../include/copytune.f90"

program regions
   use, intrinsic :: iso_c_binding
   use copytune
#ifdef WITH_MPI
   use mpi
#endif
   implicit none
   integer :: region, a, b, step, executions, status, counted, seed
   real(c_double) :: x, y, cost, total
   character(len=20) :: argument
   logical :: by_calls
   character(len=8), parameter :: names(3) = [character(len=8) :: 'zero', 'one', 'two']
#ifdef WITH_MPI
   integer :: ierr
   call MPI_Init(ierr)
#endif
   call get_command_argument(1, argument)
   read (argument, *) executions
   call get_command_argument(2, argument)
   by_calls = argument == 'by calls'
   if (by_calls) then
      region = copytune_region_by_calls('turns')
   else
      region = copytune_region('valley')
   end if
   a = copytune_variable(region, 'a', 8)
   b = copytune_variable(region, 'b', 3, names)
   total = 0
   counted = 0
   seed = 1
   do step = 1, executions
      if (.not. by_calls) status = copytune_begin(region)
      x = copytune_choice(region, a) - 5
#ifdef WITH_MPI
      if (by_calls) call MPI_Barrier(MPI_COMM_SELF, ierr)
#endif
      y = copytune_choice(region, b) - 2
      cost = 100 + 4*x*x + 10*y*y
      if (step > executions - executions/10) then
         total = total + cost
         counted = counted + 1
      end if
      seed = mod(seed*1103 + 12345, 65536)
      cost = cost*(1 + 0.02d0*(seed/65536.0d0 - 0.5d0))
      status = copytune_end_with(region, cost*1.0d-6)
      if (status < 0 .and. .not. by_calls) print '(a,i0)', 'an error: ', status
   end do
   print '(a,f0.1)', 'mean cost ', total/max(counted, 1)
   print '(a,i0)', 'version ', copytune_version()
   print '(a,i0,1x,i0)', 'errors ', copytune_end(region), copytune_begin(99)
#ifdef WITH_MPI
   call MPI_Finalize(ierr)
#endif
end program regions
