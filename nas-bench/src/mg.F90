!> NAS MG: V-cycles of a multigrid method for the Poisson problem on a periodic cube. Problem: NASA
!> report RNR-94-007. The class is fixed when the program is compiled.
program mg
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi
  use session
  use mg_grid, only: level, make_levels
  use mg_borders, only: prepare_borders, exchange_borders, exchange_with_dropped
  use mg_operators, only: find_residual, smooth, restrict_residual, interpolate
  use mg_source, only: set_source
  implicit none

  !> One class of the suite.
  type :: problem
    character(1) :: name
    integer :: finest             !< level; the grid has 2**finest points an axis
    integer :: iterations
    real(real64) :: smoother(0:2) !< coefficients for centre, faces, edges
    real(real64) :: norm          !< official value
  end type problem

  real(real64), parameter :: smoother_a(0:2) = [-3.0_real64 / 8, 1.0_real64 / 32, -1.0_real64 / 64]
  real(real64), parameter :: smoother_b(0:2) = [-3.0_real64 / 17, 1.0_real64 / 33, -1.0_real64 / 61]
  type(problem), parameter :: classes(5) = [ &
    problem('S', 5, 4, smoother_a, 0.5307707005734e-4_real64), &
    problem('W', 7, 4, smoother_a, 0.6467329375339e-5_real64), &
    problem('A', 8, 4, smoother_a, 0.2433365309069e-5_real64), &
    problem('B', 8, 20, smoother_b, 0.1800564401355e-5_real64), &
    problem('C', 9, 20, smoother_b, 0.5706732285740e-6_real64)]
  type(problem), parameter :: class = classes(index('SWABC', NAS_CLASS))

  integer, parameter :: top = class%finest
  real(real64), parameter :: points = 8.0_real64**top
  real(real64), parameter :: tolerance = 1.0e-8_real64
  !> The suite's count of floating-point operations per point and iteration.
  real(real64), parameter :: operations_per_point = 58

  type(level), allocatable :: levels(:)
  real(real64) :: start, seconds, norm
  integer :: rank, processes, iterations, iteration
  character(64) :: size_text

  call open_session(rank, processes)
  iterations = iteration_count(rank, class%iterations)
  ! The axis that is halved first must leave every process two points.
  if ((trailz(processes) + 2) / 3 > top - 1) call stop_all(rank, 'there are too many processes for this class; use fewer')

  levels = make_levels(top, rank, processes)
  call prepare_borders(levels(top), processes)
  call set_source(levels(top), processes)
  call exchange_borders(levels(top), levels(top)%f)

  ! One iteration outside the time touches all memory and opens all connections.
  call update_residual(top)
  call cycle_once()
  levels(top)%u = 0
  start = timer_start()
  call update_residual(top)
  do iteration = 1, iterations
    call cycle_once()
    call update_residual(top)
  end do
  norm = residual_norm()
  seconds = timer_stop(start)

  write (size_text, '(i0, 2(a, i0), a)') levels(top)%points, ' x ', levels(top)%points, ' x ', levels(top)%points, ' points'
  call close_session(rank, processes, outcome('MG', class%name, trim(size_text), 'norm', iterations, &
    class%iterations, seconds, operations_per_point * iterations * points, norm, class%norm, tolerance, null()))

contains

  !> One V-cycle: improves the finest level's u, given its residual r.
  subroutine cycle_once()
    integer :: k

    call restrict_from(top, levels(top)%r)
    do k = top - 1, 2, -1
      if (.not. levels(k)%active) exit
      call restrict_from(k, levels(k)%f)
    end do

    if (levels(1)%active) then
      levels(1)%u = 0
      call smooth(levels(1)%count, class%smoother, levels(1)%f, levels(1)%u)
      call exchange_borders(levels(1), levels(1)%u)
    end if
    do k = 2, top
      if (k < top .and. levels(k)%active) levels(k)%u = 0
      call interpolate_to(k)
      call update_residual(k)
      if (levels(k)%active) then
        call smooth(levels(k)%count, class%smoother, levels(k)%r, levels(k)%u)
        call exchange_borders(levels(k), levels(k)%u)
      end if
    end do
  end subroutine cycle_once

  !> Restricts `residual` of level k to the right side of level k - 1.
  subroutine restrict_from(k, residual)
    integer, intent(in) :: k
    real(real64), contiguous, intent(in) :: residual(:, :, :)

    associate (fine => levels(k), coarse => levels(k - 1))
      if (.not. coarse%active) return
      call restrict_residual(fine%count, fine%offset, residual, coarse%count, coarse%offset, coarse%f)
      call exchange_borders(coarse, coarse%f)
    end associate
  end subroutine restrict_from

  !> Adds the correction of level k - 1, interpolated, to u of level k.
  subroutine interpolate_to(k)
    integer, intent(in) :: k

    associate (coarse => levels(k - 1), fine => levels(k))
      if (.not. fine%active) return
      call exchange_with_dropped(coarse, coarse%u)
      call interpolate(coarse%count, coarse%offset, coarse%u, fine%count, fine%offset, fine%u)
    end associate
  end subroutine interpolate_to

  subroutine update_residual(k)
    integer, intent(in) :: k

    associate (l => levels(k))
      if (.not. l%active) return
      call find_residual(l%count, l%u, l%f, l%r)
      call exchange_borders(l, l%r)
    end associate
  end subroutine update_residual

  !> Root of the mean square of the finest level's residual.
  real(real64) function residual_norm()
    real(real64) :: own(1), total(1)
    integer :: j, k, ierror

    own = 0
    associate (l => levels(top))
      do k = 1, l%count(3)
        do j = 1, l%count(2)
          own(1) = own(1) + sum(l%r(1:l%count(1), j, k)**2)
        end do
      end do
    end associate
    call mpi_allreduce(own, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    residual_norm = sqrt(total(1) / points)
  end function residual_norm

end program mg
