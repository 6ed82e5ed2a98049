!> MG's hierarchy of grids and its distribution over the processes.
!>
!> Level k is a periodic cube of 2**k points an axis. The processes halve the axes in turn (z, y, x, z
!> and so on), and each holds a box of every level, with one layer of border points around it.
!> Coarse point j lies on fine point 2j, so that a coarse point belongs to the owner of that fine
!> point. Where a level has fewer points along an axis than processes, every second process has none
!> and drops out of that level and of all below it.
module mg_grid
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: level, make_levels

  type :: level
    integer :: points          !< along each axis of the whole grid
    integer :: count(3)        !< of this process's own points along x, y, z; 0 where it dropped out
    integer :: offset(3)       !< whole-grid index (from 1) of the first own point, minus 1
    logical :: active          !< this process has points of this level
    logical :: finer_active    !< this process has points of the next finer level
    integer :: neighbour(2, 3) !< process below and above along each axis, among the active ones
    logical :: drops(3)        !< along this axis every second process of the finer level has no points
    integer :: finer_neighbour(2, 3) !< the same among those active on the next finer level
    ! Own points count from 1; the borders are points 0 and count + 1 of each axis.
    real(real64), allocatable :: u(:, :, :)  !< solution, or its correction on coarser levels
    real(real64), allocatable :: f(:, :, :)  !< right side
    real(real64), allocatable :: r(:, :, :)  !< residual f - A u
  end type level

contains

  !> Levels 1 to `finest` of process `rank` among `processes` (a power of two; at most half as many
  !> along an axis as the finest level has points).
  function make_levels(finest, rank, processes) result(levels)
    integer, intent(in) :: finest, rank, processes
    type(level), allocatable :: levels(:)
    integer :: along(3), place(3), halvings, axis, k, stride
    integer :: before(3)

    halvings = trailz(processes)
    do axis = 1, 3
      along(axis) = 2**((halvings + axis - 1) / 3)
    end do
    before = [1, along(1), along(1) * along(2)]
    place = modulo(rank / before, along)

    allocate (levels(finest))
    do k = finest, 1, -1
      associate (l => levels(k))
        l%points = 2**k
        if (k == finest) then
          l%count = l%points / along
          l%offset = place * l%count
          l%finer_active = .true.
        else
          l%offset = levels(k + 1)%offset / 2
          l%count = (levels(k + 1)%offset + levels(k + 1)%count) / 2 - l%offset
          l%finer_active = levels(k + 1)%active
        end if
        l%active = l%finer_active .and. all(l%count > 0)
        do axis = 1, 3
          stride = max(1, along(axis) / l%points)
          l%drops(axis) = l%points < along(axis)
          l%neighbour(:, axis) = [process_at(axis, -stride), process_at(axis, stride)]
          l%finer_neighbour(:, axis) = [process_at(axis, -max(1, stride / 2)), process_at(axis, max(1, stride / 2))]
        end do
        if (l%finer_active) then
          associate (n => l%count + 1)
            allocate (l%u(0:n(1), 0:n(2), 0:n(3)), l%f(0:n(1), 0:n(2), 0:n(3)), l%r(0:n(1), 0:n(2), 0:n(3)), &
                      source=0.0_real64)
          end associate
        end if
      end associate
    end do

  contains

    !> The process `distance` places further along the axis.
    integer function process_at(axis, distance)
      integer, intent(in) :: axis, distance
      process_at = rank + (modulo(place(axis) + distance, along(axis)) - place(axis)) * before(axis)
    end function process_at

  end function make_levels

end module mg_grid
