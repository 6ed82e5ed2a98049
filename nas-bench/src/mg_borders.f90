!> MG's border exchanges: six faces a level, axis by axis, so that edges and corners come along.
module mg_borders
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi
  use message_fence, only: fence
  use mg_grid, only: level
  implicit none
  private
  public :: prepare_borders, exchange_borders, exchange_with_dropped

  integer, parameter :: below = 1, above = 2
  integer, parameter :: upward_tag = 10, downward_tag = 20  !< the axis is added

  !> Faces on their way, each large enough for the largest: from and to the processes below and above.
  real(real64), allocatable, asynchronous :: in_below(:), in_above(:), out_below(:), out_above(:)
  integer :: processes_in_all = 1

contains

  !> Must be called once, with the finest level, before any exchange.
  subroutine prepare_borders(finest, processes)
    type(level), intent(in) :: finest
    integer, intent(in) :: processes
    integer :: n

    n = (maxval(finest%count) + 2)**2
    allocate (in_below(n), in_above(n), out_below(n), out_above(n))
    processes_in_all = processes
  end subroutine prepare_borders

  !> Fills the borders of `a`, an array of level `l`, from the neighbours along each axis.
  subroutine exchange_borders(l, a)
    type(level), intent(in) :: l
    real(real64), contiguous, intent(inout) :: a(0:, 0:, 0:)
    integer :: axis

    if (.not. l%active) return
    do axis = 1, 3
      if (processes_in_all == 1) then
        call wrap_around(l%count, a, axis)
      else
        call swap_faces(l, a, axis)
      end if
    end do
  end subroutine exchange_borders

  !> Gives those that dropped out between the next finer level and level `l` the values of `a` around
  !> their missing points, which they need for the interpolation. Nothing to do where none dropped out.
  subroutine exchange_with_dropped(l, a)
    type(level), intent(in) :: l
    real(real64), contiguous, intent(inout) :: a(0:, 0:, 0:)
    integer :: axis

    if (.not. l%finer_active .or. .not. any(l%drops)) return
    do axis = 1, 3
      if (l%count(axis) > 0) call swap_faces(l, a, axis)
      if (.not. l%drops(axis)) cycle
      if (l%count(axis) > 0) then
        call give_faces(l, a, axis)
      else
        call take_faces(l, a, axis)
      end if
    end do
  end subroutine exchange_with_dropped

  !> Sends the outermost own planes of an axis to both neighbours and receives theirs as borders.
  !> With several processes this holds for an axis with a single one too, which then sends to itself.
  subroutine swap_faces(l, a, axis)
    type(level), intent(in) :: l
    real(real64), intent(inout) :: a(0:l%count(1) + 1, 0:l%count(2) + 1, 0:l%count(3) + 1)
    integer, intent(in) :: axis
    integer :: from_below, from_above, length, ierror

    length = face_length(l%count, axis)
    if (length == 0) return
    call mpi_irecv(in_below, length, MPI_DOUBLE_PRECISION, l%neighbour(below, axis), upward_tag + axis, &
                   MPI_COMM_WORLD, from_below, ierror)
    call mpi_irecv(in_above, length, MPI_DOUBLE_PRECISION, l%neighbour(above, axis), downward_tag + axis, &
                   MPI_COMM_WORLD, from_above, ierror)

    call pack_face(l%count, a, axis, l%count(axis), out_above)
    call mpi_send(out_above, length, MPI_DOUBLE_PRECISION, l%neighbour(above, axis), upward_tag + axis, &
                  MPI_COMM_WORLD, ierror)
    call pack_face(l%count, a, axis, 1, out_below)
    call mpi_send(out_below, length, MPI_DOUBLE_PRECISION, l%neighbour(below, axis), downward_tag + axis, &
                  MPI_COMM_WORLD, ierror)

    call mpi_wait(from_below, MPI_STATUS_IGNORE, ierror)
    call fence(in_below)
    call unpack_face(l%count, a, axis, 0, in_below)
    call mpi_wait(from_above, MPI_STATUS_IGNORE, ierror)
    call fence(in_above)
    call unpack_face(l%count, a, axis, l%count(axis) + 1, in_above)
  end subroutine swap_faces

  !> Sends the single own plane of an axis to the processes on both sides that have none.
  subroutine give_faces(l, a, axis)
    type(level), intent(in) :: l
    real(real64), intent(inout) :: a(0:l%count(1) + 1, 0:l%count(2) + 1, 0:l%count(3) + 1)
    integer, intent(in) :: axis
    integer :: length, ierror

    length = face_length(l%count, axis)
    if (length == 0) return
    call pack_face(l%count, a, axis, 1, out_above)
    call mpi_send(out_above, length, MPI_DOUBLE_PRECISION, l%finer_neighbour(above, axis), upward_tag + axis, &
                  MPI_COMM_WORLD, ierror)
    call mpi_send(out_above, length, MPI_DOUBLE_PRECISION, l%finer_neighbour(below, axis), downward_tag + axis, &
                  MPI_COMM_WORLD, ierror)
  end subroutine give_faces

  !> Receives what give_faces sends as planes 0 and 1, between which this process's points would lie.
  subroutine take_faces(l, a, axis)
    type(level), intent(in) :: l
    real(real64), intent(inout) :: a(0:l%count(1) + 1, 0:l%count(2) + 1, 0:l%count(3) + 1)
    integer, intent(in) :: axis
    integer :: from_below, from_above, length, ierror

    length = face_length(l%count, axis)
    if (length == 0) return
    call mpi_irecv(in_below, length, MPI_DOUBLE_PRECISION, l%finer_neighbour(below, axis), upward_tag + axis, &
                   MPI_COMM_WORLD, from_below, ierror)
    call mpi_irecv(in_above, length, MPI_DOUBLE_PRECISION, l%finer_neighbour(above, axis), downward_tag + axis, &
                   MPI_COMM_WORLD, from_above, ierror)
    call mpi_wait(from_below, MPI_STATUS_IGNORE, ierror)
    call fence(in_below)
    call unpack_face(l%count, a, axis, 0, in_below)
    call mpi_wait(from_above, MPI_STATUS_IGNORE, ierror)
    call fence(in_above)
    call unpack_face(l%count, a, axis, 1, in_above)
  end subroutine take_faces

  !> Points of a face: own points of the axes still to come, and with borders of those done before.
  pure integer function face_length(count, axis)
    integer, intent(in) :: count(3), axis
    integer :: first(3), last(3)

    call face_bounds(count, axis, 1, first, last)
    face_length = product(max(0, last - first + 1))
  end function face_length

  pure subroutine face_bounds(count, axis, plane, first, last)
    integer, intent(in) :: count(3), axis, plane
    integer, intent(out) :: first(3), last(3)

    first = 1
    last = count
    first(:axis - 1) = 0
    last(:axis - 1) = count(:axis - 1) + 1
    first(axis) = plane
    last(axis) = plane
  end subroutine face_bounds

  subroutine pack_face(count, a, axis, plane, face)
    integer, intent(in) :: count(3), axis, plane
    real(real64), intent(in) :: a(0:count(1) + 1, 0:count(2) + 1, 0:count(3) + 1)
    real(real64), asynchronous, intent(inout) :: face(*)
    integer :: first(3), last(3), i, j, k, next

    call face_bounds(count, axis, plane, first, last)
    next = 1
    do k = first(3), last(3)
      do j = first(2), last(2)
        do i = first(1), last(1)
          face(next + i - first(1)) = a(i, j, k)
        end do
        next = next + last(1) - first(1) + 1
      end do
    end do
  end subroutine pack_face

  subroutine unpack_face(count, a, axis, plane, face)
    integer, intent(in) :: count(3), axis, plane
    real(real64), intent(inout) :: a(0:count(1) + 1, 0:count(2) + 1, 0:count(3) + 1)
    real(real64), asynchronous, intent(in) :: face(*)
    integer :: first(3), last(3), i, j, k, next

    call face_bounds(count, axis, plane, first, last)
    next = 1
    do k = first(3), last(3)
      do j = first(2), last(2)
        do i = first(1), last(1)
          a(i, j, k) = face(next + i - first(1))
        end do
        next = next + last(1) - first(1) + 1
      end do
    end do
  end subroutine unpack_face

  !> The borders of a single process: its own planes from the other side.
  subroutine wrap_around(count, a, axis)
    integer, intent(in) :: count(3), axis
    real(real64), intent(inout) :: a(0:count(1) + 1, 0:count(2) + 1, 0:count(3) + 1)

    select case (axis)
    case (1)
      a(0, 1:count(2), 1:count(3)) = a(count(1), 1:count(2), 1:count(3))
      a(count(1) + 1, 1:count(2), 1:count(3)) = a(1, 1:count(2), 1:count(3))
    case (2)
      a(:, 0, 1:count(3)) = a(:, count(2), 1:count(3))
      a(:, count(2) + 1, 1:count(3)) = a(:, 1, 1:count(3))
    case (3)
      a(:, :, 0) = a(:, :, count(3))
      a(:, :, count(3) + 1) = a(:, :, 1)
    end select
  end subroutine wrap_around

end module mg_borders
