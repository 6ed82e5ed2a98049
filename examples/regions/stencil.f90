! stencil: the same as stencil.c, in Fortran: heat in a rod, in blocks that stay in a cache; copytune chooses their length.
!
! A sweep takes all cells STEPS time steps further. Each block is copied with STEPS cells on either side and advanced in the copy. There
! the cells at the ends go wrong, one more with each step, and the block's own stay right.
module rod
   use, intrinsic :: iso_c_binding, only: c_double
   implicit none
   integer, parameter :: steps = 16, waves = 500
   real(c_double), parameter :: diffusion = 0.25_c_double, pi = 3.14159265358979323846_c_double
   ! The default is the whole rod at a time, as it would be written first.
   integer, parameter :: choices = 6, lengths(0:choices - 1) = [huge(1), 64, 256, 1024, 4096, 16384]
   character(len=8), parameter :: names(0:choices - 1) = [character(len=8) :: 'whole', '64', '256', '1024', '4096', '16384']

contains

   ! Takes cells 1 to `cells` further, between two ends that stay at 0.
   subroutine sweep(cells, now, next, block, copies)
      integer, intent(in) :: cells, block
      real(c_double), intent(in) :: now(0:cells + 1)
      real(c_double), intent(inout) :: next(0:cells + 1), copies(0:cells + 1, 2)
      integer :: first, last, from, end, step, i, here, there
      do first = 1, cells, block
         last = first + min(block, cells + 1 - first) - 1
         from = max(first - steps, 0)
         end = min(last + steps, cells + 1)
         here = 1
         copies(from:end, 1) = now(from:end)
         do step = 1, steps
            there = 3 - here
            copies(from, there) = copies(from, here)
            copies(end, there) = copies(end, here)
            do i = from + 1, end - 1
               copies(i, there) = copies(i, here) + diffusion*(copies(i - 1, here) - 2*copies(i, here) + copies(i + 1, here))
            end do
            here = there
         end do
         next(first:last) = copies(first:last, here)
      end do
   end subroutine sweep

   ! Seconds of a sweep on a processor that takes a nanosecond for a cell, more outside its caches of 32 KiB and 1 MiB.
   real(c_double) function model(block, cells)
      integer, intent(in) :: block, cells
      real(c_double) :: bytes, slower
      bytes = 2*8*real(block + 2*steps, c_double)
      slower = merge(1.0_c_double, merge(1.5_c_double, 2.5_c_double, bytes <= 1048576), bytes <= 32768)
      model = 1.0e-9_c_double*steps*cells*(1 + 2.0_c_double*steps/block)*slower
   end function model

   ! A sine wave keeps its form and gets flatter by the same factor with each step.
   logical function is_right(cells, now, taken)
      integer, intent(in) :: cells, taken
      real(c_double), intent(in) :: now(0:cells + 1)
      real(c_double) :: angle, height
      integer :: i
      angle = pi*waves/(cells + 1)
      height = (1 - 4*diffusion*sin(angle/2)**2)**taken
      is_right = .true.
      do i = 1, cells
         is_right = is_right .and. abs(now(i) - height*sin(angle*i)) < 1.0e-9_c_double
      end do
   end function is_right

end module rod

program stencil
   use, intrinsic :: iso_c_binding, only: c_double
   use, intrinsic :: iso_fortran_env, only: int64, error_unit
   use copytune
   use rod
   implicit none
   integer :: choice = -1, executions = 1000, cells = 131072
   integer :: region, block, execution, chosen, length, status, i, seed
   integer(int64) :: start, finish, ticks
   logical :: modelled = .false., verified
   real(c_double) :: seconds, cost, expected
   real(c_double), allocatable :: now(:), next(:), copies(:, :)

   call read_options()
   allocate (now(0:cells + 1), next(0:cells + 1), copies(0:cells + 1, 2))
   now = [(sin(pi*waves/(cells + 1)*i), i=0, cells + 1)]
   now(0) = 0
   now(cells + 1) = 0
   next = 0
   seconds = 0
   cost = 0
   seed = 1
   chosen = 0
   region = copytune_region('stencil')
   block = copytune_variable(region, 'block', choices, names)
   do execution = 1, executions
      call system_clock(start, ticks)
      status = copytune_begin(region)
      chosen = choice
      if (choice < 0) chosen = copytune_choice(region, block)
      length = min(lengths(chosen), cells)
      call sweep(cells, now, next, length, copies)
      call swap()
      expected = model(length, cells)
      ! What copytune has not chosen teaches it nothing.
      if (choice >= 0) then
         status = copytune_drop(region)
      else if (modelled) then
         ! As it would be measured, within 1 %.
         seed = mod(seed*1103 + 12345, 65536)
         status = copytune_end_with(region, expected*(1 + 0.02_c_double*(seed/65536.0_c_double - 0.5_c_double)))
      else
         status = copytune_end(region)
      end if
      call system_clock(finish)
      seconds = seconds + real(finish - start, c_double)/real(ticks, c_double)
      if (execution > executions - executions/10) cost = cost + expected/(executions/10)
   end do
   verified = is_right(cells, now, executions*steps)

   print '(a,i0,a,i0,a,i0,a)', 'stencil in Fortran: ', executions, ' sweeps of ', steps, ' steps over ', cells, ' cells'
   print '(a,f14.6)', '  Time in seconds: ', seconds
   if (modelled) print '(a,f12.4,a)', '  Modelled cost:   ', 1.0e6_c_double*cost, ' µs'
   print '(a,i0,3a)', '  Last choice:     ', chosen, ' (', trim(names(chosen)), ')'
   print '(2a)', '  Verification: ', trim(merge('successful', 'failed    ', verified))
   if (.not. verified) stop 1, quiet=.true.

contains

   subroutine swap()
      real(c_double), allocatable :: swapped(:)
      call move_alloc(now, swapped)
      call move_alloc(next, now)
      call move_alloc(swapped, next)
   end subroutine swap

   ! --choice N uses that in every execution; --modelled has an execution cost what `model` says, not the time that it took.
   subroutine read_options()
      character(len=32) :: name
      integer :: place
      place = 1
      do while (place <= command_argument_count())
         call get_command_argument(place, name)
         select case (name)
         case ('--modelled')
            modelled = .true.
         case ('--choice')
            call read_number(name, place, 0, choices - 1, choice)
         case ('--executions')
            call read_number(name, place, 10, 100000000, executions)
         case ('--size')
            call read_number(name, place, 16, 16777216, cells)
         case default
            call refuse(name)
         end select
         place = place + 1
      end do
   end subroutine read_options

   ! The value of the option at that place, which is the one before it then.
   subroutine read_number(name, place, least, greatest, number)
      character(len=*), intent(in) :: name
      integer, intent(inout) :: place
      integer, intent(in) :: least, greatest
      integer, intent(out) :: number
      character(len=32) :: text
      integer :: problem
      place = place + 1
      call get_command_argument(place, text)
      read (text, '(i32)', iostat=problem) number
      if (problem /= 0 .or. text == '') number = least - 1
      if (number < least .or. number > greatest) call refuse(trim(name)//' '//text)
   end subroutine read_number

   subroutine refuse(what)
      character(len=*), intent(in) :: what
      write (error_unit, '(3a,i0,a)') 'stencil: ', trim(what), ' cannot be used; there is --choice 0 to ', choices - 1, &
         ', --executions N, --size N, --modelled'
      stop 2, quiet=.true.
   end subroutine refuse

end program stencil
