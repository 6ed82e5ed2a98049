!> CG's random sparse symmetric positive definite matrix: each process builds its own block.
!>
!> A = sum over i of w(i) * x(i) * transpose(x(i)) + (rcond - shift) * I with sparse random vectors
!> x(i) and weights w(i) that fall geometrically from 1 to rcond.
module cg_matrix
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use random_sequence, only: first_state, next_value
  use cg_grid, only: grid
  implicit none
  private
  public :: sparse_block, make_matrix, multiply_block

  !> A block in compressed rows; row and column numbers count from 1 within the block.
  type :: sparse_block
    integer, allocatable :: row_start(:)  !< row j has the entries row_start(j) to row_start(j+1)-1
    integer, allocatable :: column(:)     !< increasing within a row
    real(real64), allocatable :: value(:)
  end type sparse_block

  !> Lists of pairs (number, value), one after the other: list j is start(j) to start(j+1)-1.
  type :: pair_lists
    integer, allocatable :: start(:), number(:)
    real(real64), allocatable :: value(:)
  end type pair_lists

  real(real64), parameter :: rcond = 0.1_real64

contains

  !> The block of process `g` of the matrix of order `n` whose vectors have `nonzeros` random elements.
  type(sparse_block) function make_matrix(g, n, nonzeros, shift) result(block)
    type(grid), intent(in) :: g
    integer, intent(in) :: n, nonzeros
    real(real64), intent(in) :: shift
    type(pair_lists) :: vectors, rows_of_vector, vectors_of_column
    integer :: vector
    real(real64) :: weight, ratio

    vectors = random_vectors(n, nonzeros)
    rows_of_vector = restricted(vectors, g%first_row, g%row_count)
    vectors_of_column = restricted(vectors, g%first_column, g%column_count)
    weight = 1
    ratio = rcond**(1.0_real64 / n)
    do vector = 1, n
      associate (first => vectors_of_column%start(vector), next => vectors_of_column%start(vector + 1))
        vectors_of_column%value(first:next - 1) = weight * vectors_of_column%value(first:next - 1)
      end associate
      weight = weight * ratio
    end do
    vectors_of_column = transposed(vectors_of_column, g%column_count)
    block = assembled(g, rows_of_vector, vectors_of_column, rcond - shift)
  end function make_matrix

  !> The vectors x(1) to x(n) as lists of (position, value).
  type(pair_lists) function random_vectors(n, nonzeros) result(vectors)
    integer, intent(in) :: n, nonzeros
    integer, allocatable :: seen_in(:)
    integer :: vector, position, range, first, next
    integer(int64) :: state
    real(real64) :: value, discarded

    allocate (vectors%start(n + 1), vectors%number(n * (nonzeros + 1)), vectors%value(n * (nonzeros + 1)))
    allocate (seen_in(n), source=0)
    range = 1
    do while (range < n)
      range = 2 * range
    end do
    state = first_state
    ! The suite draws one number before the first vector.
    discarded = next_value(state)

    next = 1
    do vector = 1, n
      first = next
      vectors%start(vector) = first
      do while (next < first + nonzeros)
        value = next_value(state)
        position = int(range * next_value(state)) + 1
        if (position > n) cycle
        if (seen_in(position) == vector) cycle
        seen_in(position) = vector
        vectors%number(next) = position
        vectors%value(next) = value
        next = next + 1
      end do
      if (seen_in(vector) == vector) then
        where (vectors%number(first:next - 1) == vector) vectors%value(first:next - 1) = 0.5_real64
      else
        vectors%number(next) = vector
        vectors%value(next) = 0.5_real64
        next = next + 1
      end if
    end do
    vectors%start(n + 1) = next
  end function random_vectors

  !> The lists without the numbers outside first to first+count-1; those left count from 1.
  type(pair_lists) function restricted(lists, first, count) result(kept)
    type(pair_lists), intent(in) :: lists
    integer, intent(in) :: first, count
    integer :: list, entry, next, length

    associate (number => lists%number(:lists%start(size(lists%start)) - 1))
      length = sum(merge(1, 0, number >= first .and. number < first + count))
    end associate
    allocate (kept%start(size(lists%start)), kept%number(length), kept%value(length))
    next = 1
    do list = 1, size(lists%start) - 1
      kept%start(list) = next
      do entry = lists%start(list), lists%start(list + 1) - 1
        if (lists%number(entry) < first .or. lists%number(entry) >= first + count) cycle
        kept%number(next) = lists%number(entry) - first + 1
        kept%value(next) = lists%value(entry)
        next = next + 1
      end do
    end do
    kept%start(size(lists%start)) = next
  end function restricted

  !> For each number 1 to `count` the list of (list that has it, value there).
  type(pair_lists) function transposed(lists, count) result(turned)
    type(pair_lists), intent(in) :: lists
    integer, intent(in) :: count
    integer, allocatable :: next(:)
    integer :: list, entry, number

    allocate (next(count), source=0)
    do entry = 1, size(lists%number)
      next(lists%number(entry)) = next(lists%number(entry)) + 1
    end do
    turned%start = starts_of(next)
    next = turned%start(:count)
    allocate (turned%number(size(lists%number)), turned%value(size(lists%number)))
    do list = 1, size(lists%start) - 1
      do entry = lists%start(list), lists%start(list + 1) - 1
        number = lists%number(entry)
        turned%number(next(number)) = list
        turned%value(next(number)) = lists%value(entry)
        next(number) = next(number) + 1
      end do
    end do
  end function transposed

  !> The block's entries, from the vectors' elements in its rows and, weighted, in its columns.
  !> It is built column by column, so that the rows come out sorted without sorting: one pass counts
  !> the different columns of each row, the second adds up the values and appends them.
  type(sparse_block) function assembled(g, rows_of_vector, vectors_of_column, on_diagonal) result(block)
    type(grid), intent(in) :: g
    type(pair_lists), intent(in) :: rows_of_vector, vectors_of_column
    real(real64), intent(in) :: on_diagonal
    integer, allocatable :: seen_in(:), next(:), touched(:)
    real(real64), allocatable :: total(:)
    integer :: column, row, outer, inner, vector, touches, i

    allocate (seen_in(g%row_count), next(g%row_count), source=0)
    do column = 1, g%column_count
      do outer = vectors_of_column%start(column), vectors_of_column%start(column + 1) - 1
        vector = vectors_of_column%number(outer)
        do inner = rows_of_vector%start(vector), rows_of_vector%start(vector + 1) - 1
          row = rows_of_vector%number(inner)
          if (seen_in(row) /= column) then
            seen_in(row) = column
            next(row) = next(row) + 1
          end if
        end do
      end do
    end do
    block%row_start = starts_of(next)
    next = block%row_start(:g%row_count)
    allocate (block%column(block%row_start(g%row_count + 1) - 1), block%value(block%row_start(g%row_count + 1) - 1))

    allocate (touched(g%row_count), total(g%row_count))
    seen_in = 0
    do column = 1, g%column_count
      touches = 0
      do outer = vectors_of_column%start(column), vectors_of_column%start(column + 1) - 1
        vector = vectors_of_column%number(outer)
        do inner = rows_of_vector%start(vector), rows_of_vector%start(vector + 1) - 1
          row = rows_of_vector%number(inner)
          if (seen_in(row) /= column) then
            seen_in(row) = column
            touches = touches + 1
            touched(touches) = row
            total(row) = 0
          end if
          total(row) = total(row) + vectors_of_column%value(outer) * rows_of_vector%value(inner)
        end do
      end do
      ! Element (i, i) is always there, because every x(i) has an element i.
      row = g%first_column + column - g%first_row
      if (row >= 1 .and. row <= g%row_count) total(row) = total(row) + on_diagonal
      do i = 1, touches
        row = touched(i)
        block%column(next(row)) = column
        block%value(next(row)) = total(row)
        next(row) = next(row) + 1
      end do
    end do
  end function assembled

  !> Where lists of the given lengths start when they lie one after the other, and where the last ends.
  function starts_of(lengths) result(start)
    integer, intent(in) :: lengths(:)
    integer :: start(size(lengths) + 1)
    integer :: i

    start(1) = 1
    do i = 1, size(lengths)
      start(i + 1) = start(i) + lengths(i)
    end do
  end function starts_of

  !> product = block * x.
  subroutine multiply_block(rows, entries, row_start, column, value, x, product)
    integer, intent(in) :: rows, entries
    integer, intent(in) :: row_start(rows + 1), column(entries)
    real(real64), intent(in) :: value(entries), x(*)
    real(real64), intent(out) :: product(rows)
    real(real64) :: even, odd
    integer :: row, entry, last

    do row = 1, rows
      ! Two sums, since a single one would wait for each addition before the next.
      even = 0
      odd = 0
      last = row_start(row + 1) - 1
      do entry = row_start(row), last - 1, 2
        even = even + value(entry) * x(column(entry))
        odd = odd + value(entry + 1) * x(column(entry + 1))
      end do
      if (modulo(last - row_start(row), 2) == 0) even = even + value(last) * x(column(last))
      product(row) = even + odd
    end do
  end subroutine multiply_block

end module cg_matrix
