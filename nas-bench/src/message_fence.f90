!> Keeps the compiler from using an old copy of what a nonblocking receive has written.
!>
!> The compiler sees no connection between MPI_Wait and the buffer named in MPI_Irecv. The standard's
!> remedy MPI_F_SYNC_REG cannot serve: MPICH 4.0 stores a result through a second argument that the
!> call does not have. A procedure in a file of its own, which might write the buffer for all that
!> its callers can see, does the same.
module message_fence
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: fence

contains

  !> To be called with each receive buffer after its MPI_Wait.
  subroutine fence(buffer)
    real(real64), asynchronous, intent(inout) :: buffer(*)

    associate (unused => buffer(1))
    end associate
  end subroutine fence

end module message_fence
