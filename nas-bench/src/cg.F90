!> NAS CG: an estimate of the smallest eigenvalue of a large sparse symmetric positive definite
!> matrix by the inverse power method, whose linear systems are solved by 25 conjugate gradient
!> steps. Problem: NASA report RNR-94-007. The class is fixed when the program is compiled.
program cg
  use, intrinsic :: iso_fortran_env, only: real64
  use session
  use cg_grid, only: grid, make_grid, sum_along_row, exchange_transpose, sum_numbers
  use cg_matrix, only: sparse_block, make_matrix, multiply_block
  implicit none

  !> One class of the suite.
  type :: problem
    character(1) :: name
    integer :: n            !< order of the matrix
    integer :: nonzeros     !< random elements of each generating vector
    integer :: iterations   !< of the power method
    real(real64) :: shift   !< subtracted from the matrix's eigenvalues
    real(real64) :: zeta    !< official value
  end type problem

  type(problem), parameter :: classes(5) = [ &
    problem('S', 1400, 7, 15, 10.0_real64, 8.5971775078648_real64), &
    problem('W', 7000, 8, 15, 12.0_real64, 10.362595087124_real64), &
    problem('A', 14000, 11, 15, 20.0_real64, 17.130235054029_real64), &
    problem('B', 75000, 13, 75, 60.0_real64, 22.712745482631_real64), &
    problem('C', 150000, 15, 75, 110.0_real64, 28.973605592845_real64)]
  type(problem), parameter :: class = classes(index('SWABC', NAS_CLASS))

  integer, parameter :: gradient_steps = 25
  real(real64), parameter :: tolerance = 1.0e-10_real64

  type(grid) :: g
  type(sparse_block) :: a
  ! The pieces of vectors are as long as the block has rows, though a vector may need only the first
  ! half: q, w and r also hold products, which are cut by rows.
  real(real64), allocatable, asynchronous :: x(:), z(:), p(:), q(:), r(:), w(:)
  real(real64) :: start, seconds, zeta, residual_norm
  integer :: rank, processes, iterations, iteration
  character(64) :: size_text, note

  call open_session(rank, processes)
  iterations = iteration_count(rank, class%iterations)
  if (processes > class%n) call stop_all(rank, 'there are more processes than rows of the matrix; use fewer')

  g = make_grid(rank, processes, class%n)
  a = make_matrix(g, class%n, class%nonzeros, class%shift)
  allocate (x(g%row_count), z(g%row_count), p(g%row_count), q(g%row_count), r(g%row_count), w(g%row_count))

  ! One iteration outside the time touches all memory and opens all connections.
  x = 1
  call iterate(zeta, residual_norm)
  x = 1
  zeta = 0
  start = timer_start()
  do iteration = 1, iterations
    call iterate(zeta, residual_norm)
  end do
  seconds = timer_stop(start)

  write (size_text, '(i0, a, i0, a)') class%n, ' rows, ', class%nonzeros, ' random elements a generating vector'
  write (note, '(a, es22.14)') 'Residual norm: ', residual_norm
  call close_session(rank, processes, outcome('CG', class%name, trim(size_text), 'zeta', iterations, &
    class%iterations, seconds, operations(iterations), zeta, class%zeta, tolerance, trim(note)))

contains

  !> One iteration of the power method: solves A z = x, estimates the eigenvalue, and sets x = z / |z|.
  subroutine iterate(zeta, residual_norm)
    real(real64), intent(out) :: zeta, residual_norm
    real(real64) :: products(2), scale
    integer :: i

    call solve(residual_norm)
    products = 0
    do i = 1, g%column_count
      products(1) = products(1) + x(i) * z(i)
      products(2) = products(2) + z(i) * z(i)
    end do
    call sum_numbers(g, products)
    zeta = class%shift + 1 / products(1)
    scale = 1 / sqrt(products(2))
    do i = 1, g%column_count
      x(i) = scale * z(i)
    end do
  end subroutine iterate

  !> 25 conjugate gradient steps for A z = x from z = 0, and the norm of x - A z.
  subroutine solve(residual_norm)
    real(real64), intent(out) :: residual_norm
    real(real64) :: rho(1), previous_rho, curvature(1), square(1), alpha, beta
    integer :: step, i

    rho = 0
    do i = 1, g%column_count
      z(i) = 0
      r(i) = x(i)
      p(i) = r(i)
      rho(1) = rho(1) + r(i) * r(i)
    end do
    call sum_numbers(g, rho)

    do step = 1, gradient_steps
      call apply_matrix(p, q)
      curvature = 0
      do i = 1, g%column_count
        curvature(1) = curvature(1) + p(i) * q(i)
      end do
      call sum_numbers(g, curvature)
      alpha = rho(1) / curvature(1)
      previous_rho = rho(1)
      rho = 0
      do i = 1, g%column_count
        z(i) = z(i) + alpha * p(i)
        r(i) = r(i) - alpha * q(i)
        rho(1) = rho(1) + r(i) * r(i)
      end do
      call sum_numbers(g, rho)
      beta = rho(1) / previous_rho
      do i = 1, g%column_count
        p(i) = r(i) + beta * p(i)
      end do
    end do

    call apply_matrix(z, r)
    square = 0
    do i = 1, g%column_count
      square(1) = square(1) + (x(i) - r(i))**2
    end do
    call sum_numbers(g, square)
    residual_norm = sqrt(square(1))
  end subroutine solve

  !> product = A * vector; both are pieces cut by columns.
  subroutine apply_matrix(vector, product)
    real(real64), intent(in) :: vector(g%row_count)
    real(real64), asynchronous, intent(inout) :: product(g%row_count)

    call multiply_block(g%row_count, size(a%value), a%row_start, a%column, a%value, vector, w)
    call sum_along_row(g, w, product)
    call exchange_transpose(g, w, product)
  end subroutine apply_matrix

  !> Floating-point operations of the given number of iterations by the suite's formula.
  pure real(real64) function operations(iterations)
    integer, intent(in) :: iterations
    real(real64) :: row_entries

    row_entries = class%nonzeros * (class%nonzeros + 1)
    operations = 2.0_real64 * iterations * class%n * (3 + row_entries + 25 * (5 + row_entries) + 3)
  end function operations

end program cg
