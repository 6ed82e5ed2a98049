!> What both benchmarks do around their computation: start MPI, check how they were
!> started, time, report and verify.
module session
  use, intrinsic :: iso_fortran_env, only: real64, error_unit
  use mpi
  implicit none
  private
  public :: outcome, open_session, close_session, stop_all, iteration_count, timer_start, timer_stop

  !> What a finished run reports.
  type :: outcome
    character(:), allocatable :: benchmark   !< "CG" or "MG"
    character(:), allocatable :: class_name  !< "S", "W", "A", "B" or "C"
    character(:), allocatable :: size_text   !< the problem's size for people
    character(:), allocatable :: value_name  !< what the verified value is
    integer :: iterations                    !< those that were timed
    integer :: official_iterations           !< those that the official value belongs to
    real(real64) :: seconds                  !< of the slowest process
    real(real64) :: operations               !< of the timed iterations, by the suite's formula
    real(real64) :: computed, official       !< the value and what it should be
    real(real64) :: tolerance                !< greatest relative error that verifies
    character(:), allocatable :: note        !< one more line for people, or absent
  end type outcome

  integer, parameter :: iterations_official = 0, iterations_invalid = -1
  integer, parameter :: root = 0

contains

  !> Starts MPI; ends the program if the number of processes is not a power of two.
  subroutine open_session(rank, processes)
    integer, intent(out) :: rank, processes
    character(12) :: number
    integer :: ierror

    call mpi_init(ierror)
    call mpi_comm_rank(MPI_COMM_WORLD, rank, ierror)
    call mpi_comm_size(MPI_COMM_WORLD, processes, ierror)
    if (popcnt(processes) /= 1) then
      write (number, '(i0)') processes
      call stop_all(rank, 'the number of processes must be a power of two, not '//trim(number)// &
                    '; start it with mpirun -np 1, 2, 4, 8 and so on')
    end if
  end subroutine open_session

  !> Ends all processes with exit status 1 after one sentence on standard error.
  !> Every process must call it.
  subroutine stop_all(rank, sentence)
    integer, intent(in) :: rank
    character(*), intent(in) :: sentence
    integer :: ierror

    if (rank == root) write (error_unit, '(2a)') 'nas-bench: ', sentence
    call mpi_finalize(ierror)
    stop 1, quiet=.true.
  end subroutine stop_all

  !> The number of iterations to time: NAS_ITERATIONS as process 0 sees it, else `official`.
  integer function iteration_count(rank, official) result(count)
    integer, intent(in) :: rank, official
    integer :: ierror

    if (rank == root) count = requested_iterations()
    call mpi_bcast(count, 1, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    if (count == iterations_invalid) then
      call stop_all(rank, 'NAS_ITERATIONS must be a whole number from 1 to 1000000; unset it for the official number')
    end if
    if (count == iterations_official) count = official
  end function iteration_count

  integer function requested_iterations() result(count)
    character(16) :: text
    integer :: length, status

    call get_environment_variable('NAS_ITERATIONS', text, length, status)
    if (status == 1 .or. (status == 0 .and. length == 0)) then
      count = iterations_official
    else if (status /= 0 .or. verify(trim(text), '0123456789') /= 0) then
      count = iterations_invalid
    else
      read (text, *, iostat=status) count
      if (status /= 0 .or. count < 1 .or. count > 1000000) count = iterations_invalid
    end if
  end function requested_iterations

  !> Starts the clock when all processes have arrived.
  real(real64) function timer_start() result(start)
    integer :: ierror

    call mpi_barrier(MPI_COMM_WORLD, ierror)
    start = mpi_wtime()
  end function timer_start

  !> Seconds since `start` on the slowest process; defined on process 0.
  real(real64) function timer_stop(start) result(seconds)
    real(real64), intent(in) :: start
    real(real64) :: own(1), slowest(1)
    integer :: ierror

    own = mpi_wtime() - start
    slowest = own
    call mpi_reduce(own, slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, root, MPI_COMM_WORLD, ierror)
    seconds = slowest(1)
  end function timer_stop

  !> Reports on process 0 and ends the program: exit status 0, or 1 if the value is wrong.
  subroutine close_session(rank, processes, run)
    integer, intent(in) :: rank, processes
    type(outcome), intent(in) :: run
    integer :: failed, ierror

    failed = 0
    if (rank == root) call report(processes, run, failed)
    call mpi_bcast(failed, 1, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    call mpi_finalize(ierror)
    if (failed /= 0) stop 1, quiet=.true.
  end subroutine close_session

  subroutine report(processes, run, failed)
    integer, intent(in) :: processes
    type(outcome), intent(in) :: run
    integer, intent(out) :: failed
    real(real64) :: relative_error

    relative_error = abs(run%computed - run%official) / abs(run%official)
    print '(3a)', 'NAS ', run%benchmark, ' (written anew from the published problem)'
    print '(2a)', '  Class:           ', run%class_name
    print '(2a)', '  Size:            ', run%size_text
    print '(a, i0)', '  Processes:       ', processes
    print '(2a)', '  MPI library:     ', library_name()
    print '(a, i0)', '  Iterations:      ', run%iterations
    print '(2a)', '  Time in seconds: ', decimal(run%seconds, 6)
    print '(2a)', '  Mop/s:           ', decimal(run%operations / max(run%seconds, tiny(1.0_real64)) / 1.0e6_real64, 2)
    if (allocated(run%note)) print '(2a)', '  ', run%note
    print '(4a, es22.14)', '  Computed ', run%value_name, ':', repeat(' ', 7 - len(run%value_name)), run%computed
    failed = 0
    if (run%iterations /= run%official_iterations) then
      print '(a, i0, a)', '  Verification: not checked (', run%iterations, ' iterations)'
      return
    end if
    print '(4a, es22.14)', '  Official ', run%value_name, ':', repeat(' ', 7 - len(run%value_name)), run%official
    print '(a, es11.3)', '  Relative error: ', relative_error
    ! Written so that a NaN fails.
    if (relative_error <= run%tolerance) then
      print '(a)', '  Verification: successful'
    else
      print '(a)', '  Verification: failed'
      failed = 1
    end if
  end subroutine report

  !> The number without blanks before it but with a digit before the point.
  function decimal(number, places) result(text)
    real(real64), intent(in) :: number
    integer, intent(in) :: places
    character(:), allocatable :: text
    character(40) :: field, form

    write (form, '(a, i0, a)') '(f40.', places, ')'
    write (field, form) number
    text = trim(adjustl(field))
  end function decimal

  !> The first line of what the MPI library calls itself.
  function library_name() result(name)
    character(:), allocatable :: name
    character(MPI_MAX_LIBRARY_VERSION_STRING) :: text
    integer :: length, line_end, ierror

    call mpi_get_library_version(text, length, ierror)
    ! MPICH separates its name from the version by a tab.
    line_end = scan(text(:length), ','//char(10)//char(0))
    if (line_end > 0) length = line_end - 1
    name = trim(text(:length))
    line_end = index(name, char(9))
    if (line_end > 0) name(line_end:line_end) = ' '
  end function library_name

end module session
