!> MG's four operators on one process's box. Borders must be filled before, and after where noted.
!>
!> Each 27-point operator has one coefficient per distance class: centre, faces, edges, corners. Along
!> a line in x, the sums over the four neighbouring lines at distance 1 and the four at distance
!> sqrt(2) are made once and used for three points each.
module mg_operators
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: find_residual, smooth, restrict_residual, interpolate

contains

  !> r = f - A u without r's borders, where A has the coefficients -8/3, 0, 1/6, 1/12.
  subroutine find_residual(count, u, f, r)
    integer, intent(in) :: count(3)
    real(real64), dimension(0:count(1) + 1, 0:count(2) + 1, 0:count(3) + 1), intent(in) :: u, f
    real(real64), dimension(0:count(1) + 1, 0:count(2) + 1, 0:count(3) + 1), intent(inout) :: r
    real(real64), parameter :: centre = -8.0_real64 / 3, edge = 1.0_real64 / 6, corner = 1.0_real64 / 12
    real(real64) :: near(0:count(1) + 1), far(0:count(1) + 1)
    integer :: i, j, k

    do k = 1, count(3)
      do j = 1, count(2)
        do i = 0, count(1) + 1
          near(i) = u(i, j - 1, k) + u(i, j + 1, k) + u(i, j, k - 1) + u(i, j, k + 1)
          far(i) = u(i, j - 1, k - 1) + u(i, j + 1, k - 1) + u(i, j - 1, k + 1) + u(i, j + 1, k + 1)
        end do
        do i = 1, count(1)
          r(i, j, k) = f(i, j, k) - centre * u(i, j, k) - edge * (far(i) + near(i - 1) + near(i + 1)) &
                       - corner * (far(i - 1) + far(i + 1))
        end do
      end do
    end do
  end subroutine find_residual

  !> u = u + C r without u's borders, where C has the coefficients c and 0 for the corners.
  subroutine smooth(count, c, r, u)
    integer, intent(in) :: count(3)
    real(real64), intent(in) :: c(0:2)
    real(real64), dimension(0:count(1) + 1, 0:count(2) + 1, 0:count(3) + 1), intent(in) :: r
    real(real64), dimension(0:count(1) + 1, 0:count(2) + 1, 0:count(3) + 1), intent(inout) :: u
    real(real64) :: near(0:count(1) + 1), far(0:count(1) + 1)
    integer :: i, j, k

    do k = 1, count(3)
      do j = 1, count(2)
        do i = 0, count(1) + 1
          near(i) = r(i, j - 1, k) + r(i, j + 1, k) + r(i, j, k - 1) + r(i, j, k + 1)
          far(i) = r(i, j - 1, k - 1) + r(i, j + 1, k - 1) + r(i, j - 1, k + 1) + r(i, j + 1, k + 1)
        end do
        do i = 1, count(1)
          u(i, j, k) = u(i, j, k) + c(0) * r(i, j, k) + c(1) * (r(i - 1, j, k) + r(i + 1, j, k) + near(i)) &
                       + c(2) * (far(i) + near(i - 1) + near(i + 1))
        end do
      end do
    end do
  end subroutine smooth

  !> coarse = full weighting of fine (1/2, 1/4, 1/8, 1/16), without coarse's borders. The offsets are
  !> those of the two boxes in their whole grids.
  subroutine restrict_residual(fine_count, fine_offset, fine, coarse_count, coarse_offset, coarse)
    integer, intent(in) :: fine_count(3), fine_offset(3), coarse_count(3), coarse_offset(3)
    real(real64), intent(in) :: fine(0:fine_count(1) + 1, 0:fine_count(2) + 1, 0:fine_count(3) + 1)
    real(real64), intent(inout) :: coarse(0:coarse_count(1) + 1, 0:coarse_count(2) + 1, 0:coarse_count(3) + 1)
    real(real64) :: near(0:fine_count(1) + 1), far(0:fine_count(1) + 1)
    integer :: shift(3), i, j, k, fi, fj, fk

    ! Coarse point j of this box is its fine point 2j + shift.
    shift = 2 * coarse_offset - fine_offset
    do k = 1, coarse_count(3)
      fk = 2 * k + shift(3)
      do j = 1, coarse_count(2)
        fj = 2 * j + shift(2)
        do fi = 0, fine_count(1) + 1
          near(fi) = fine(fi, fj - 1, fk) + fine(fi, fj + 1, fk) + fine(fi, fj, fk - 1) + fine(fi, fj, fk + 1)
          far(fi) = fine(fi, fj - 1, fk - 1) + fine(fi, fj + 1, fk - 1) &
                    + fine(fi, fj - 1, fk + 1) + fine(fi, fj + 1, fk + 1)
        end do
        do i = 1, coarse_count(1)
          fi = 2 * i + shift(1)
          coarse(i, j, k) = 0.5_real64 * fine(fi, fj, fk) &
                            + 0.25_real64 * (fine(fi - 1, fj, fk) + fine(fi + 1, fj, fk) + near(fi)) &
                            + 0.125_real64 * (far(fi) + near(fi - 1) + near(fi + 1)) &
                            + 0.0625_real64 * (far(fi - 1) + far(fi + 1))
        end do
      end do
    end do
  end subroutine restrict_residual

  !> fine = fine + trilinear interpolation of coarse, borders included on both.
  subroutine interpolate(coarse_count, coarse_offset, coarse, fine_count, fine_offset, fine)
    integer, intent(in) :: coarse_count(3), coarse_offset(3), fine_count(3), fine_offset(3)
    real(real64), intent(in) :: coarse(0:coarse_count(1) + 1, 0:coarse_count(2) + 1, 0:coarse_count(3) + 1)
    real(real64), intent(inout) :: fine(0:fine_count(1) + 1, 0:fine_count(2) + 1, 0:fine_count(3) + 1)
    real(real64) :: line(0:coarse_count(1) + 1)
    integer :: shift(3), i, j, k, cj, ck, j_odd, k_odd

    ! Fine point i lies on coarse point (i + shift) / 2 of this box or half way to the next one.
    shift = fine_offset - 2 * coarse_offset
    do k = 0, fine_count(3) + 1
      ck = (k + shift(3)) / 2
      k_odd = modulo(k + shift(3), 2)
      do j = 0, fine_count(2) + 1
        cj = (j + shift(2)) / 2
        j_odd = modulo(j + shift(2), 2)
        if (j_odd == 0 .and. k_odd == 0) then
          line = coarse(:, cj, ck)
        else if (k_odd == 0) then
          line = 0.5_real64 * (coarse(:, cj, ck) + coarse(:, cj + 1, ck))
        else if (j_odd == 0) then
          line = 0.5_real64 * (coarse(:, cj, ck) + coarse(:, cj, ck + 1))
        else
          line = 0.25_real64 * (coarse(:, cj, ck) + coarse(:, cj + 1, ck) &
                                + coarse(:, cj, ck + 1) + coarse(:, cj + 1, ck + 1))
        end if
        do i = modulo(shift(1), 2), fine_count(1) + 1, 2
          fine(i, j, k) = fine(i, j, k) + line((i + shift(1)) / 2)
        end do
        do i = 1 - modulo(shift(1), 2), fine_count(1) + 1, 2
          associate (ci => (i + shift(1)) / 2)
            fine(i, j, k) = fine(i, j, k) + 0.5_real64 * (line(ci) + line(ci + 1))
          end associate
        end do
      end do
    end do
  end subroutine interpolate

end module mg_operators
