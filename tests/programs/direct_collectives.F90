! direct_collectives [alltoall|scatterv]: collectives again and again from the same buffers, through mpif.h, or only that one. Every
! element is checked in every round.
program direct_collectives
  implicit none
  include 'mpif.h'
  integer, parameter :: block = 40000, rounds = 60
  integer :: ierror, rank, ranks, round, i, j
  integer, allocatable :: out(:, :), in(:, :), total(:), counts(:), places(:)
  character(16) :: way
  integer(8) :: checksum

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  allocate(out(block, 0:ranks - 1), in(block, 0:ranks - 1), total(block))
  ! The last part first.
  counts = [(block, j = 1, ranks)]
  places = [((ranks - j) * block, j = 1, ranks)]
  call get_command_argument(1, way)
  checksum = 0
  do round = 1, rounds
    do j = 0, ranks - 1
      out(:, j) = [(value(rank, j, i), i = 1, block)]
    end do
    if (way == 'scatterv') then
      in = -1
      call MPI_Scatterv(out, counts, places, MPI_INTEGER, in, block, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
      call expect(in(:, 0), 0, ranks - 1 - rank)
      cycle
    end if
    in = -1
    call MPI_Alltoall(out, block, MPI_INTEGER, in, block, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    do j = 0, ranks - 1
      call expect(in(:, j), j, rank)
    end do
    if (command_argument_count() > 0) cycle
    in = -1
    call MPI_Allgather(out(:, 0), block, MPI_INTEGER, in, block, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    do j = 0, ranks - 1
      call expect(in(:, j), j, 0)
    end do
    ! What is not given may be anything.
    in = -1
    in(:, rank) = out(:, 1)
    call MPI_Allgather(MPI_IN_PLACE, -7, MPI_DATATYPE_NULL, in, block, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    do j = 0, ranks - 1
      call expect(in(:, j), j, 1)
    end do
    in(:, rank) = out(:, 0)
    call MPI_Allgather(MPI_IN_PLACE, block, MPI_INTEGER, in, block, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    do j = 0, ranks - 1
      call expect(in(:, j), j, 0)
    end do
    call MPI_Allreduce(out(:, 0), total, block, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
    do i = 1, block
      if (total(i) /= maxval([(value(j, 0, i), j = 0, ranks - 1)])) call wrong()
    end do
    if (rank /= mod(round, ranks)) out(:, 0) = -1
    call MPI_Bcast(out, block, MPI_INTEGER, mod(round, ranks), MPI_COMM_WORLD, ierror)
    call expect(out(:, 0), mod(round, ranks), 0)
  end do
  do j = 0, ranks - 1
    if (j == rank) print '(a, i0, a, z16.16)', 'rank ', rank, ': ', checksum
    flush(6)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end do
  call MPI_Finalize(ierror)
contains
  integer function value(from, to, place)
    integer, intent(in) :: from, to, place
    value = ((round * 16 + from) * 16 + to) * 100003 + place * 7919
  end function

  subroutine expect(data, from, to)
    integer, intent(in) :: data(:), from, to
    integer :: i
    do i = 1, block
      if (data(i) /= value(from, to, i)) call wrong()
      checksum = ieor(checksum, int(data(i), 8)) * 1099511628211_8
    end do
  end subroutine

  subroutine wrong()
    print *, 'rank', rank, 'round', round, 'is wrong'
    call MPI_Abort(MPI_COMM_WORLD, 71, ierror)
  end subroutine
end program
