!> The suite's pseudo-random sequence: x(k+1) = a * x(k) mod 2**46 with a = 5**13,
!> where element k has the value x(k) * 2**(-46), between 0 and 1.
module random_sequence
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  private
  public :: multiplier, first_state, next_value, multiply, power

  integer(int64), parameter :: multiplier = 1220703125_int64
  integer(int64), parameter :: first_state = 314159265_int64

  integer(int64), parameter :: low_bits = 2_int64**23 - 1
  integer(int64), parameter :: state_bits = 2_int64**46 - 1
  real(real64), parameter :: unit = 2.0_real64**(-46)

contains

  !> a * b mod 2**46. The factors are split at bit 23, because Fortran promises
  !> nothing about integers that overflow; no intermediate exceeds 2**47.
  elemental integer(int64) function multiply(a, b) result(product)
    integer(int64), intent(in) :: a, b
    integer(int64) :: a_low, b_low, middle

    a_low = iand(a, low_bits)
    b_low = iand(b, low_bits)
    middle = ishft(a, -23) * b_low + a_low * ishft(b, -23)
    product = iand(ishft(iand(middle, low_bits), 23) + a_low * b_low, state_bits)
  end function multiply

  !> base**exponent mod 2**46, by which the sequence jumps ahead by `exponent` elements.
  elemental integer(int64) function power(base, exponent) result(value)
    integer(int64), intent(in) :: base, exponent
    integer(int64) :: square, left

    value = 1
    square = base
    left = exponent
    do while (left > 0)
      if (iand(left, 1_int64) == 1) value = multiply(value, square)
      square = multiply(square, square)
      left = ishft(left, -1)
    end do
  end function power

  !> Advances the state by one element and returns that element's value.
  real(real64) function next_value(state) result(value)
    integer(int64), intent(inout) :: state

    state = multiply(multiplier, state)
    value = unit * real(state, real64)
  end function next_value

end module random_sequence
