!> CG's grid of processes, its distribution of the matrix and the vectors, and its messages.
!>
!> The processes form rows x columns, powers of two, with columns = rows or 2 * rows. A process
!> holds one block of the matrix. Vectors are cut like the matrix's columns; the processes of one
!> grid column hold the same piece, so that one grid row holds a whole vector.
module cg_grid
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi
  use message_fence, only: fence
  implicit none
  private
  public :: grid, make_grid, sum_along_row, exchange_transpose, sum_numbers

  !> One exchange of the sum along a row.
  type :: sum_step
    integer :: partner
    integer :: send_first, send_count  !< the segment that the partner needs
  end type sum_step

  type :: grid
    integer :: processes
    integer :: first_row, row_count        !< of the matrix block; also the length of partial products
    integer :: first_column, column_count  !< of the matrix block; also the piece of each vector
    integer :: keep_first, keep_count      !< the segment of the row block whose sum ends up here
    integer :: transpose_partner
    type(sum_step), allocatable :: steps(:)
  end type grid

  integer, parameter :: sum_tag = 100, transpose_tag = 200, number_tag = 300

contains

  !> The place of process `rank` among `processes` (a power of two), for a matrix of order `n`.
  type(grid) function make_grid(rank, processes, n) result(g)
    integer, intent(in) :: rank, processes, n
    integer :: log_columns, rows, columns, row, column, ratio, step, distance

    log_columns = (trailz(processes) + 1) / 2
    columns = 2**log_columns
    rows = processes / columns
    ratio = columns / rows
    row = rank / columns
    column = modulo(rank, columns)

    g%processes = processes
    g%first_column = first_of_block(column)
    g%column_count = first_of_block(column + 1) - g%first_column
    ! A row block is as long as the column blocks that lie over against it: one or two.
    g%first_row = first_of_block(row * ratio)
    g%row_count = first_of_block((row + 1) * ratio) - g%first_row
    g%keep_first = kept_first(column)
    g%keep_count = kept_count(column)
    ! With this partner the relation is mutual, and what it keeps is what this process lacks.
    g%transpose_partner = (column / ratio) * columns + row * ratio + modulo(column, ratio)

    allocate (g%steps(log_columns))
    do step = 1, log_columns
      distance = 2**(step - 1)
      associate (other => ieor(column, distance))
        g%steps(step) = sum_step(row * columns + other, kept_first(other), kept_count(other))
      end associate
    end do

  contains

    !> First index (from 1) of a column block (from 0); blocks differ in length by one at most.
    integer function first_of_block(block)
      integer, intent(in) :: block
      first_of_block = int(int(block, int64) * n / columns) + 1
    end function first_of_block

    !> Where the segment that grid column `of_column` keeps begins in this row's block.
    integer function kept_first(of_column)
      integer, intent(in) :: of_column
      kept_first = first_of_block(row * ratio + modulo(of_column, ratio)) - g%first_row + 1
    end function kept_first

    integer function kept_count(of_column)
      integer, intent(in) :: of_column
      integer :: block
      block = row * ratio + modulo(of_column, ratio)
      kept_count = first_of_block(block + 1) - first_of_block(block)
    end function kept_count

  end function make_grid

  !> Adds up `partial` over the processes of the grid row, as far as each needs the sum: segment
  !> keep_first, keep_count. In a grid twice as wide as high the first exchange halves the segment;
  !> all others double the number of addends. `incoming` receives the partners' segments.
  subroutine sum_along_row(g, partial, incoming)
    type(grid), intent(in) :: g
    real(real64), asynchronous, intent(inout) :: partial(g%row_count), incoming(g%row_count)
    integer :: step, request, ierror, i

    do step = 1, size(g%steps)
      associate (s => g%steps(step))
        call mpi_irecv(incoming(g%keep_first), g%keep_count, MPI_DOUBLE_PRECISION, s%partner, sum_tag + step, &
                       MPI_COMM_WORLD, request, ierror)
        call mpi_send(partial(s%send_first), s%send_count, MPI_DOUBLE_PRECISION, s%partner, sum_tag + step, &
                      MPI_COMM_WORLD, ierror)
        call mpi_wait(request, MPI_STATUS_IGNORE, ierror)
      end associate
      call fence(incoming)
      do i = g%keep_first, g%keep_first + g%keep_count - 1
        partial(i) = partial(i) + incoming(i)
      end do
    end do
  end subroutine sum_along_row

  !> Turns the summed segment, cut by rows, into this process's piece of a vector, cut by columns.
  !> A process on the diagonal is its own partner and sends to itself.
  subroutine exchange_transpose(g, summed, piece)
    type(grid), intent(in) :: g
    real(real64), asynchronous, intent(inout) :: summed(g%row_count), piece(g%row_count)
    integer :: request, ierror

    if (g%processes == 1) then
      piece = summed
      return
    end if
    call mpi_irecv(piece, g%column_count, MPI_DOUBLE_PRECISION, g%transpose_partner, transpose_tag, &
                   MPI_COMM_WORLD, request, ierror)
    call mpi_send(summed(g%keep_first), g%keep_count, MPI_DOUBLE_PRECISION, g%transpose_partner, transpose_tag, &
                  MPI_COMM_WORLD, ierror)
    call mpi_wait(request, MPI_STATUS_IGNORE, ierror)
    call fence(piece)
  end subroutine exchange_transpose

  !> Adds up `numbers` over the processes of the grid row by recursive doubling. All get the same
  !> bits, since each exchange adds the same two addends on both sides.
  subroutine sum_numbers(g, numbers)
    type(grid), intent(in) :: g
    real(real64), asynchronous, contiguous, intent(inout) :: numbers(:)
    real(real64), asynchronous :: incoming(size(numbers))
    integer :: step, request, ierror

    do step = 1, size(g%steps)
      associate (partner => g%steps(step)%partner)
        call mpi_irecv(incoming, size(numbers), MPI_DOUBLE_PRECISION, partner, number_tag + step, &
                       MPI_COMM_WORLD, request, ierror)
        call mpi_send(numbers, size(numbers), MPI_DOUBLE_PRECISION, partner, number_tag + step, &
                      MPI_COMM_WORLD, ierror)
        call mpi_wait(request, MPI_STATUS_IGNORE, ierror)
      end associate
      call fence(incoming)
      numbers = numbers + incoming
    end do
  end subroutine sum_numbers

end module cg_grid
