!> MG's right side: +1 at the ten largest elements of the random sequence, -1 at the ten smallest.
module mg_source
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi
  use random_sequence, only: first_state, multiplier, multiply, next_value, power
  use mg_grid, only: level
  implicit none
  private
  public :: set_source

  integer, parameter :: charges = 10  !< of each sign

contains

  !> Fills the right side of the finest level, without its borders. The sequence runs through the
  !> whole grid with x fastest; each process makes the stretches that belong to its box.
  subroutine set_source(l, processes)
    type(level), intent(inout) :: l
    integer, intent(in) :: processes
    ! Largest first; the smallest are kept as the largest of the negated values.
    real(real64) :: largest(charges), smallest(charges), value
    integer :: largest_at(charges), smallest_at(charges), i, j, k, at
    integer(int64) :: state, row_jump, plane_jump, row_state, plane_state

    row_jump = power(multiplier, int(l%points, int64))
    plane_jump = power(row_jump, int(l%points, int64))
    plane_state = multiply(first_state, power(multiplier, int(position(l, 1, 1, 1), int64)))
    largest = -huge(value)
    smallest = -huge(value)
    do k = 1, l%count(3)
      row_state = plane_state
      do j = 1, l%count(2)
        state = row_state
        at = position(l, 1, j, k)
        do i = 1, l%count(1)
          value = next_value(state)
          if (value > largest(charges)) call insert(largest, largest_at, value, at)
          if (-value > smallest(charges)) call insert(smallest, smallest_at, -value, at)
          at = at + 1
        end do
        row_state = multiply(row_state, row_jump)
      end do
      plane_state = multiply(plane_state, plane_jump)
    end do

    call select_globally(largest, largest_at, processes)
    call select_globally(smallest, smallest_at, processes)
    l%f = 0
    call place_charges(l, largest_at, 1.0_real64)
    call place_charges(l, smallest_at, -1.0_real64)
  end subroutine set_source

  !> Where own point (i, j, k) stands in the sequence, from 0.
  pure integer function position(l, i, j, k)
    type(level), intent(in) :: l
    integer, intent(in) :: i, j, k

    associate (o => l%offset)
      position = o(1) + i - 1 + l%points * (o(2) + j - 1 + l%points * (o(3) + k - 1))
    end associate
  end function position

  !> Puts a value greater than the last into a falling list, and drops the last.
  pure subroutine insert(values, places, value, place)
    real(real64), intent(inout) :: values(:)
    integer, intent(inout) :: places(:)
    real(real64), intent(in) :: value
    integer, intent(in) :: place
    integer :: i

    i = size(values)
    do while (i > 1)
      if (values(i - 1) >= value) exit
      values(i) = values(i - 1)
      places(i) = places(i - 1)
      i = i - 1
    end do
    values(i) = value
    places(i) = place
  end subroutine insert

  !> Replaces each process's own list by the list of all.
  subroutine select_globally(values, places, processes)
    real(real64), intent(inout) :: values(charges)
    integer, intent(inout) :: places(charges)
    integer, intent(in) :: processes
    real(real64) :: own(2, charges), everyone(2, charges * processes)
    integer :: i, ierror

    ! Places travel as reals, which hold them exactly: one message does, and MPICH's module, which
    ! declares no interface here, is called with one type only.
    own(1, :) = values
    own(2, :) = places
    call mpi_allgather(own, 2 * charges, MPI_DOUBLE_PRECISION, everyone, 2 * charges, MPI_DOUBLE_PRECISION, &
                       MPI_COMM_WORLD, ierror)
    values = -huge(values)
    do i = 1, size(everyone, 2)
      if (everyone(1, i) > values(charges)) call insert(values, places, everyone(1, i), nint(everyone(2, i)))
    end do
  end subroutine select_globally

  !> Sets the right side at those of the places that lie in this process's box.
  subroutine place_charges(l, places, charge)
    type(level), intent(inout) :: l
    integer, intent(in) :: places(charges)
    real(real64), intent(in) :: charge
    integer :: own(3), i

    do i = 1, charges
      associate (n => l%points)
        own = [modulo(places(i), n), modulo(places(i) / n, n), places(i) / n**2] + 1 - l%offset
      end associate
      if (all(own >= 1 .and. own <= l%count)) l%f(own(1), own(2), own(3)) = charge
    end do
  end subroutine place_charges

end module mg_source
