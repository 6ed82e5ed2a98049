! Fortran through the module `mpi_f08`: derived types for handles, array sections as buffers, optional
! last arguments, and the sentinels.
program fortran_f08
  use mpi_f08
  implicit none
  integer, parameter :: longest = 70000, rounds = 15
  integer, parameter :: lengths(8) = [0, 1, 50, 256, 1024, 2062, 8192, 70000]
  integer, asynchronous :: out(longest), in(longest), both(longest)
  integer :: rank, ranks, peer, round, k, n, i, seed, count, ierr
  integer(kind=8) :: total
  integer(kind=8), allocatable :: totals(:)
  integer(kind=MPI_ADDRESS_KIND) :: places(2)
  type(MPI_Request) :: requests(4)
  type(MPI_Status) :: status, statuses(4)
  type(MPI_Message) :: message
  type(MPI_Datatype) :: type
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  peer = ieor(rank, 1)
  total = 1
  do round = 1, rounds
    do k = 1, 8
      n = lengths(k)
      seed = round * 100 + k
      call fill(out, n, seed + rank)
      call MPI_Sendrecv(out, n, MPI_INTEGER, peer, 1, in, longest, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
                        MPI_COMM_WORLD, status, ierr)
      call MPI_Get_count(status, MPI_INTEGER, count)
      call expect(count == n .and. status%MPI_SOURCE == peer .and. status%MPI_TAG == 1)
      call verify(in, n, seed + peer)
      call MPI_Sendrecv_replace(in, n, MPI_INTEGER, peer, 2, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call verify(in, n, seed + rank)
      if (rank < peer) then
        call MPI_Send(out, n, MPI_INTEGER, peer, 3, MPI_COMM_WORLD)
        call MPI_Mprobe(peer, 4, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE)
        call MPI_Mrecv(in, n, MPI_INTEGER, message, status)
      else
        call MPI_Recv(in, n, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call MPI_Ssend(out, n, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, ierr)
      end if
      call verify(in, n, seed + peer)
      call MPI_Irecv(in, n, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, requests(1))
      call MPI_Irecv(both, n, MPI_INTEGER, peer, 7, MPI_COMM_WORLD, requests(2), ierr)
      call MPI_Isend(out, n, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, requests(3))
      call MPI_Issend(out, n, MPI_INTEGER, peer, 7, MPI_COMM_WORLD, requests(4), ierr)
      select case (mod(round, 3))
      case (0)
        call MPI_Waitall(4, requests, statuses)
        call expect(statuses(1)%MPI_TAG == 6 .and. statuses(2)%MPI_TAG == 7)
      case (1)
        call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
      case default
        do i = 1, 4
          flag = .false.
          do while (.not. flag)
            call MPI_Test(requests(i), flag, MPI_STATUS_IGNORE)
          end do
        end do
      end select
      call verify(in, n, seed + peer)
      call verify(both, n, seed + peer)
    end do
    call sections()

    call fill(both, 3000, round + rank)
    call MPI_Allreduce(MPI_IN_PLACE, both, 3000, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call take(both, 3000)
    call MPI_Get_address(out(11), places(1))
    call MPI_Get_address(both(5), places(2))
    call MPI_Type_create_hindexed(2, [2000, 300], places, MPI_INTEGER, type)
    call MPI_Type_commit(type)
    call fill(out, 3000, round + rank)
    call fill(both, 3000, round + rank + 5)
    if (rank < peer) then
      call MPI_Send(MPI_BOTTOM, 1, type, peer, 8, MPI_COMM_WORLD)
      call MPI_Recv(MPI_BOTTOM, 1, type, peer, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    else
      call MPI_Recv(MPI_BOTTOM, 1, type, peer, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call MPI_Send(MPI_BOTTOM, 1, type, peer, 8, MPI_COMM_WORLD)
    end if
    call MPI_Type_free(type)
    call take(out, 3000)
    call take(both, 3000)
    call MPI_Bcast(both, 5000, MPI_INTEGER, mod(round, ranks), MPI_COMM_WORLD)
    call take(both, 5000)
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  allocate(totals(ranks))
  call MPI_Gather(total, 1, MPI_INTEGER8, totals, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD)
  if (rank == 0) then
    do i = 1, ranks
      print '(a,i0,a,i0)', 'rank ', i - 1, ': ', totals(i)
    end do
  end if
  call MPI_Finalize()

contains

  ! Every second element. A nonblocking receive into a section is only defined where the library
  ! supports subarrays (MPICH does, Open MPI with gfortran does not); a short send works in both.
  subroutine sections()
    call fill(out, 2000, round + rank + 30)
    call fill(in, 2000, round + 40)
    call MPI_Isend(out(1:1000:2), 500, MPI_INTEGER, peer, 10, MPI_COMM_WORLD, requests(1))
    call MPI_Recv(in(1:1000:2), 500, MPI_INTEGER, peer, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    do i = 1, 1000, 2
      call expect(in(i) == element(round + peer + 30, i) .and. in(i + 1) == element(round + 40, i + 1))
    end do
    call take(in, 2000)
    if (MPI_SUBARRAYS_SUPPORTED) then
      call MPI_Irecv(in(2:30000:3), 9999, MPI_INTEGER, peer, 11, MPI_COMM_WORLD, requests(1))
      call fill(out, 30000, round + rank + 50)
      call MPI_Isend(out(2:30000:3), 9999, MPI_INTEGER, peer, 11, MPI_COMM_WORLD, requests(2))
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      do i = 2, 29996, 3
        call expect(in(i) == element(round + peer + 50, i))
      end do
      call take(in, 30000)
    end if
  end subroutine sections

  integer function element(start, j)
    integer, intent(in) :: start, j
    element = mod(start * 7919 + j * 104729, 1000003)
  end function element

  subroutine fill(data, length, start)
    integer, intent(out) :: data(*)
    integer, intent(in) :: length, start
    integer :: j
    do j = 1, length
      data(j) = element(start, j)
    end do
  end subroutine fill

  subroutine verify(data, length, start)
    integer, intent(in) :: data(*), length, start
    integer :: j
    do j = 1, length
      call expect(data(j) == element(start, j))
    end do
    call take(data, length)
  end subroutine verify

  subroutine take(data, length)
    integer, intent(in) :: data(*), length
    integer :: j
    do j = 1, length
      total = mod(total * 31 + abs(data(j)), 1000000007_8)
    end do
  end subroutine take

  subroutine expect(truth)
    logical, intent(in) :: truth
    if (.not. truth) stop 70
  end subroutine expect
end program fortran_f08
