! The functions of copytune.h for Fortran: compile this file with the program, and write `use copytune`.
!
!     stencil = copytune_region('stencil')
!     block = copytune_variable(stencil, 'block', 4)
!     do step = 1, steps
!        status = copytune_begin(stencil)
!        call sweep(8 * 2**copytune_choice(stencil, block))
!        status = copytune_end(stencil)
!     end do
!
! Choices are numbered from 0, the default. Without libcopytune.so, preloaded or linked, nothing happens and every choice is 0.
! Answers below 0 are the errors of copytune.h.
module copytune
   use, intrinsic :: iso_c_binding
   implicit none
   private
   public :: copytune_version, copytune_region, copytune_region_by_calls, copytune_variable, copytune_begin, copytune_choice
   public :: copytune_end, copytune_end_with, copytune_drop

   integer, parameter, public :: copytune_order = -1, copytune_unknown = -2, copytune_busy = -3
   integer, parameter, public :: copytune_too_many = -4, copytune_value = -5, copytune_off = -6

   ! struct copytune_functions of copytune.h
   type, bind(c) :: functions
      integer(c_int) :: version
      type(c_funptr) :: region, variable, begin, choice, end, end_with, drop, memcpy, region_by_calls
   end type functions

   abstract interface
      function find_functions(version) bind(c) result(found)
         import :: c_int, c_ptr
         integer(c_int), value :: version
         type(c_ptr) :: found
      end function find_functions
      function of_name(name) bind(c) result(answer)
         import :: c_int, c_char
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int) :: answer
      end function of_name
      function of_variable(region, name, choices, names) bind(c) result(answer)
         import :: c_int, c_char, c_ptr
         integer(c_int), value :: region, choices
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: names
         integer(c_int) :: answer
      end function of_variable
      function of_region(region) bind(c) result(answer)
         import :: c_int
         integer(c_int), value :: region
         integer(c_int) :: answer
      end function of_region
      function of_choice(region, variable) bind(c) result(answer)
         import :: c_int
         integer(c_int), value :: region, variable
         integer(c_int) :: answer
      end function of_choice
      function of_cost(region, cost) bind(c) result(answer)
         import :: c_int, c_double
         integer(c_int), value :: region
         real(c_double), value :: cost
         integer(c_int) :: answer
      end function of_cost
   end interface

   interface
      function dlsym(handle, name) bind(c, name='dlsym') result(found)
         import :: c_ptr, c_funptr, c_char
         type(c_ptr), value :: handle
         character(kind=c_char), intent(in) :: name(*)
         type(c_funptr) :: found
      end function dlsym
   end interface

   ! Set once; threads that get there together set the same.
   logical, save :: is_known = .false.
   integer, save :: version = 0
   procedure(of_name), pointer, save :: library_region => null(), library_region_by_calls => null()
   procedure(of_variable), pointer, save :: library_variable => null()
   procedure(of_region), pointer, save :: library_begin => null(), library_end => null(), library_drop => null()
   procedure(of_choice), pointer, save :: library_choice => null()
   procedure(of_cost), pointer, save :: library_end_with => null()

contains

   ! The version of the library's functions; 0 without it.
   integer function copytune_version()
      if (.not. is_known) call find()
      copytune_version = version
   end function copytune_version

   subroutine find()
      type(c_funptr) :: entry
      type(c_ptr) :: found
      procedure(find_functions), pointer :: ask
      type(functions), pointer :: table
      ! RTLD_DEFAULT of dlsym(3) is a null pointer.
      entry = dlsym(c_null_ptr, 'copytune_functions'//c_null_char)
      if (c_associated(entry)) then
         call c_f_procpointer(entry, ask)
         found = ask(2_c_int)
         if (c_associated(found)) then
            call c_f_pointer(found, table)
            call c_f_procpointer(table%region, library_region)
            call c_f_procpointer(table%variable, library_variable)
            call c_f_procpointer(table%begin, library_begin)
            call c_f_procpointer(table%choice, library_choice)
            call c_f_procpointer(table%end, library_end)
            call c_f_procpointer(table%end_with, library_end_with)
            call c_f_procpointer(table%drop, library_drop)
            call c_f_procpointer(table%region_by_calls, library_region_by_calls)
            version = table%version
         end if
      end if
      is_known = .true.
   end subroutine find

   ! The region with that name, which the first call adds.
   integer function copytune_region(name)
      character(len=*), intent(in) :: name
      copytune_region = 0
      if (copytune_version() > 0) copytune_region = library_region(trim(name)//c_null_char)
   end function copytune_region

   ! The same, and the MPI calls of the program mark its executions: from one copytune_choice to the next one of the same variable, if
   ! the thread has made MPI calls in between. It has no copytune_begin and copytune_end.
   integer function copytune_region_by_calls(name)
      character(len=*), intent(in) :: name
      copytune_region_by_calls = 0
      if (copytune_version() > 0) copytune_region_by_calls = library_region_by_calls(trim(name)//c_null_char)
   end function copytune_region_by_calls

   ! A variable of the region with so many choices, before its first execution; the variable's number. Of `names`, one for each
   ! choice, trailing blanks do not count.
   integer function copytune_variable(region, name, choices, names)
      integer, intent(in) :: region, choices
      character(len=*), intent(in) :: name
      character(len=*), intent(in), optional :: names(:)
      character(kind=c_char), allocatable, target :: text(:, :)
      type(c_ptr), allocatable, target :: addresses(:)
      type(c_ptr) :: list
      integer :: i, j
      copytune_variable = 0
      if (copytune_version() == 0) return
      list = c_null_ptr
      if (present(names)) then
         if (size(names) < choices) then
            copytune_variable = copytune_value
            return
         end if
         allocate (text(len(names) + 1, size(names)), addresses(size(names)))
         text = c_null_char
         do i = 1, size(names)
            do j = 1, len_trim(names(i))
               text(j, i) = names(i) (j:j)
            end do
            addresses(i) = c_loc(text(1, i))
         end do
         list = c_loc(addresses)
      end if
      copytune_variable = library_variable(int(region, c_int), trim(name)//c_null_char, int(choices, c_int), list)
   end function copytune_variable

   ! An execution of the region begins in this thread.
   integer function copytune_begin(region)
      integer, intent(in) :: region
      copytune_begin = 0
      if (copytune_version() > 0) copytune_begin = library_begin(int(region, c_int))
   end function copytune_begin

   ! The choice that is to be used now, from 0 to the number of choices less 1.
   integer function copytune_choice(region, variable)
      integer, intent(in) :: region, variable
      copytune_choice = 0
      if (copytune_version() > 0) copytune_choice = library_choice(int(region, c_int), int(variable, c_int))
   end function copytune_choice

   ! The execution ends.
   integer function copytune_end(region)
      integer, intent(in) :: region
      copytune_end = 0
      if (copytune_version() > 0) copytune_end = library_end(int(region, c_int))
   end function copytune_end

   ! The execution ends and has cost so much, in seconds or any other unit. Where MPI calls mark it, they end it all the same.
   integer function copytune_end_with(region, cost)
      integer, intent(in) :: region
      real(c_double), intent(in) :: cost
      copytune_end_with = 0
      if (copytune_version() > 0) copytune_end_with = library_end_with(int(region, c_int), cost)
   end function copytune_end_with

   ! The execution ends and does not count. Where MPI calls mark the region, they end it all the same.
   integer function copytune_drop(region)
      integer, intent(in) :: region
      copytune_drop = 0
      if (copytune_version() > 0) copytune_drop = library_drop(int(region, c_int))
   end function copytune_drop

end module copytune
