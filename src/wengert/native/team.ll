; A team of threads that shares the elements of one of NumPy's inner loops.
;
; The elements are cut into as many regions as threads take part. A thread begins with the region of its own place, so
; that it finds in its cache what it wrote there last time, takes it in chunks, and then helps with the others. Whoever
; computes an element, the result is the same; so the dispatching thread waits for workers that have begun, never for
; one that has not. What a job is gets written before its workers are called and read after they have answered.

; The memory of a team: what all share, followed by a %Place for the dispatcher and one for each worker.
;   busy         1 while a job runs
;   patience     how often a worker looks for work before it sleeps
;   job          the present one
;   regions      how many parts its elements are cut into
;   raised       the floating-point conditions met
;   environment  the dispatcher's rounding and the like, of a C type that is opaque here
%Team = type { i64, i64, ptr, i64, i64, [88 x i8], [128 x i8] }
; Where a thread works.
;   state   0 idle, 1 called, 2 running
;   team    whose place it is
;   number  which it is; the dispatcher's is 0
;   asleep  1 if the worker sleeps, or is about to
;   next    how many elements of the region have been taken
;   mutex, condition: to sleep on, of C types that are opaque here
%Place = type { i64, ptr, i64, i64, [96 x i8], i64, [120 x i8], [128 x i8], [128 x i8] }
; What is to be computed: rows of elements without gaps, all of them one row where there are none between rows either.
;   loop       a %Loop
;   count      number of elements
;   addresses  of the operands and the result
;   strides    bytes from an element to the next: 0 for a number
;   row        elements of a row
;   axes       how many axes number the rows
;   shape      of the result
;   jumps      the strides along these axes; null for a number
%Job = type { ptr, i64, [3 x i64], [3 x i64], i64, i32, ptr, [3 x ptr] }
; one of NumPy's inner loops and its data; bytes of an element; number of operands
%Loop = type { ptr, ptr, i64, i64 }
; NumPy's array objects, as in its public header:
; header, data, number of dimensions, dimensions, strides, base, dtype, flags
%Array = type { [2 x i64], i64, i32, ptr, ptr, ptr, ptr, i32 }

declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @feholdexcept(ptr)
declare i32 @fesetenv(ptr)
declare i32 @feclearexcept(i32)
declare i32 @fetestexcept(i32)
declare void @pause()

; The place with a number.
define internal ptr @place(ptr %team, i64 %number) {
  %places = getelementptr %Team, ptr %team, i64 1
  %place = getelementptr %Place, ptr %places, i64 %number
  ret ptr %place
}

; The first element of a region: a multiple of 64, so that regions of aligned arrays share no cache line.
define internal i64 @first(i64 %count, i64 %region, i64 %regions) {
  %last = icmp uge i64 %region, %regions
  %product = mul i64 %count, %region
  %share = udiv i64 %product, %regions
  %aligned = and i64 %share, -64
  %first = select i1 %last, i64 %count, i64 %aligned
  ret i64 %first
}

; The bytes from the first row of an operand, or of the result, to another.
define internal i64 @jump(ptr %job, i64 %operand, i64 %row) {
entry:
  %axes.slot = getelementptr %Job, ptr %job, i64 0, i32 5
  %axes = load i32, ptr %axes.slot
  %shape.slot = getelementptr %Job, ptr %job, i64 0, i32 6
  %shape = load ptr, ptr %shape.slot
  %jumps.slot = getelementptr %Job, ptr %job, i64 0, i32 7, i64 %operand
  %jumps = load ptr, ptr %jumps.slot
  %number = icmp eq ptr %jumps, null
  %one.row = icmp eq i32 %axes, 0
  %still = or i1 %number, %one.row
  br i1 %still, label %none, label %axis

none:
  ret i64 0

axis:
  %inner = phi i32 [ %axes, %entry ], [ %current, %axis ]
  %rest = phi i64 [ %row, %entry ], [ %quotient, %axis ]
  %bytes = phi i64 [ 0, %entry ], [ %moved, %axis ]
  %current = sub i32 %inner, 1
  %length.slot = getelementptr i64, ptr %shape, i32 %current
  %length = load i64, ptr %length.slot
  %index = urem i64 %rest, %length
  %quotient = udiv i64 %rest, %length
  %jump.slot = getelementptr i64, ptr %jumps, i32 %current
  %jump = load i64, ptr %jump.slot
  %step = mul i64 %index, %jump
  %moved = add i64 %bytes, %step
  %more = icmp ugt i32 %current, 0
  br i1 %more, label %axis, label %end

end:
  ret i64 %moved
}

; Compute chunks, first of the region of one's own place, until none is left anywhere.
define internal void @work(ptr %team, i64 %number) {
entry:
  %arguments = alloca [3 x i64]
  %size = alloca i64
  %job.slot = getelementptr %Team, ptr %team, i64 0, i32 2
  %job = load ptr, ptr %job.slot
  %regions.slot = getelementptr %Team, ptr %team, i64 0, i32 3
  %regions = load i64, ptr %regions.slot
  %loop = load ptr, ptr %job
  %function = load ptr, ptr %loop
  %data.slot = getelementptr %Loop, ptr %loop, i64 0, i32 1
  %data = load ptr, ptr %data.slot
  %count.slot = getelementptr %Job, ptr %job, i64 0, i32 1
  %count = load i64, ptr %count.slot
  %strides = getelementptr %Job, ptr %job, i64 0, i32 3
  %row.slot = getelementptr %Job, ptr %job, i64 0, i32 4
  %row.length = load i64, ptr %row.slot
  br label %region

region:
  %visited = phi i64 [ 0, %entry ], [ %visited.next, %exhausted ]
  %turned = add i64 %number, %visited
  %current = urem i64 %turned, %regions
  %following = add i64 %current, 1
  %from = call i64 @first(i64 %count, i64 %current, i64 %regions)
  %to = call i64 @first(i64 %count, i64 %following, i64 %regions)
  %owner = call ptr @place(ptr %team, i64 %current)
  %next.slot = getelementptr %Place, ptr %owner, i64 0, i32 5
  br label %chunk

chunk:
  %taken = atomicrmw add ptr %next.slot, i64 8192 monotonic
  %start = add i64 %from, %taken
  %left = sub i64 %to, %start
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %compute, label %exhausted

compute:
  %full = icmp sgt i64 %left, 8192
  %length = select i1 %full, i64 8192, i64 %left
  %end = add i64 %start, %length
  br label %run

run: ; what lies in one row
  %element = phi i64 [ %start, %compute ], [ %element.next, %call ]
  %row = udiv i64 %element, %row.length
  %column = urem i64 %element, %row.length
  %row.left = sub i64 %row.length, %column
  %chunk.left = sub i64 %end, %element
  %row.ends = icmp ult i64 %row.left, %chunk.left
  %run.length = select i1 %row.ends, i64 %row.left, i64 %chunk.left
  store i64 %run.length, ptr %size
  br label %argument

argument:
  %index = phi i64 [ 0, %run ], [ %index.next, %argument ]
  %address.slot = getelementptr %Job, ptr %job, i64 0, i32 2, i64 %index
  %address = load i64, ptr %address.slot
  %stride.slot = getelementptr %Job, ptr %job, i64 0, i32 3, i64 %index
  %stride = load i64, ptr %stride.slot
  %offset = mul i64 %stride, %column
  %jump = call i64 @jump(ptr %job, i64 %index, i64 %row)
  %at.row = add i64 %address, %jump
  %moved = add i64 %at.row, %offset
  %argument.slot = getelementptr [3 x i64], ptr %arguments, i64 0, i64 %index
  store i64 %moved, ptr %argument.slot
  %index.next = add i64 %index, 1
  %more = icmp ult i64 %index.next, 3
  br i1 %more, label %argument, label %call

call:
  call void %function(ptr %arguments, ptr %size, ptr %strides, ptr %data)
  %element.next = add i64 %element, %run.length
  %rows.left = icmp ult i64 %element.next, %end
  br i1 %rows.left, label %run, label %chunk

exhausted:
  %visited.next = add i64 %visited, 1
  %all = icmp eq i64 %visited.next, %regions
  br i1 %all, label %done, label %region

done:
  %conditions = call i32 @fetestexcept(i32 {conditions})
  %wide = zext i32 %conditions to i64
  %raised = getelementptr %Team, ptr %team, i64 0, i32 4
  %before = atomicrmw or ptr %raised, i64 %wide monotonic
  ret void
}

; A worker's whole life. Its place says where its team is and which number it has.
define ptr @worker(ptr %place) {
entry:
  %team.slot = getelementptr %Place, ptr %place, i64 0, i32 1
  %team = load ptr, ptr %team.slot
  %number.slot = getelementptr %Place, ptr %place, i64 0, i32 2
  %number = load i64, ptr %number.slot
  %patience.slot = getelementptr %Team, ptr %team, i64 0, i32 1
  %environment = getelementptr %Team, ptr %team, i64 0, i32 6
  %asleep = getelementptr %Place, ptr %place, i64 0, i32 3
  %mutex = getelementptr %Place, ptr %place, i64 0, i32 7
  %condition = getelementptr %Place, ptr %place, i64 0, i32 8
  br label %look

look:
  %looks = phi i64 [ 0, %entry ], [ %looks.next, %pause ], [ 0, %finished ], [ 0, %missed ], [ 0, %awake ]
  %state = load atomic i64, ptr %place seq_cst, align 8
  %called = icmp eq i64 %state, 1
  br i1 %called, label %answer, label %wait

wait:
  %looks.next = add i64 %looks, 1
  %patience = load i64, ptr %patience.slot
  %tired = icmp ugt i64 %looks.next, %patience
  br i1 %tired, label %lie.down, label %pause

pause:
  call void @pause()
  br label %look

answer:
  %exchange = cmpxchg ptr %place, i64 1, i64 2 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %exchange, 1
  br i1 %mine, label %run, label %missed

missed:
  br label %look

run:
  %set = call i32 @fesetenv(ptr %environment)
  %cleared = call i32 @feclearexcept(i32 {conditions})
  call void @work(ptr %team, i64 %number)
  br label %finished

finished:
  store atomic i64 0, ptr %place seq_cst, align 8
  br label %look

lie.down:
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 1, ptr %asleep seq_cst, align 8
  %present = load atomic i64, ptr %place seq_cst, align 8
  %idle = icmp eq i64 %present, 0
  br i1 %idle, label %sleep, label %awake

sleep: ; once woken it stays awake for a while: the job that woke it may be over, but others follow
  %woken = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %awake

awake:
  store atomic i64 0, ptr %asleep seq_cst, align 8
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %look
}

; Wake the worker of a place.
define internal void @wake(ptr %place) {
  %mutex = getelementptr %Place, ptr %place, i64 0, i32 7
  %condition = getelementptr %Place, ptr %place, i64 0, i32 8
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %signalled = call i32 @pthread_cond_signal(ptr %condition)
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

; Run a job together with regions - 1 workers. Return the floating-point conditions met, plus 65536 if workers slept
; and were not woken; -1 if another job runs.
define internal i64 @dispatch(ptr %team, ptr %job, i64 %regions, i64 %rouse) {
entry:
  %environment = getelementptr %Team, ptr %team, i64 0, i32 6
  %raised.slot = getelementptr %Team, ptr %team, i64 0, i32 4
  %rousing = icmp ne i64 %rouse, 0
  %claim = cmpxchg ptr %team, i64 0, i64 1 seq_cst seq_cst
  %claimed = extractvalue { i64, i1 } %claim, 1
  br i1 %claimed, label %prepare, label %refused

refused:
  ret i64 -1

prepare:
  %job.slot = getelementptr %Team, ptr %team, i64 0, i32 2
  store ptr %job, ptr %job.slot
  %regions.slot = getelementptr %Team, ptr %team, i64 0, i32 3
  store i64 %regions, ptr %regions.slot
  store i64 0, ptr %raised.slot
  %held = call i32 @feholdexcept(ptr %environment)
  br label %reset

reset:
  %r = phi i64 [ 0, %prepare ], [ %r.next, %reset ]
  %r.place = call ptr @place(ptr %team, i64 %r)
  %r.slot = getelementptr %Place, ptr %r.place, i64 0, i32 5
  store i64 0, ptr %r.slot
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %regions
  br i1 %r.more, label %reset, label %post

post:
  %p = phi i64 [ 1, %reset ], [ %p.next, %posted ]
  %sleepers = phi i64 [ 0, %reset ], [ %sleepers.next, %posted ]
  %p.place = call ptr @place(ptr %team, i64 %p)
  store atomic i64 1, ptr %p.place seq_cst, align 8
  %p.asleep.slot = getelementptr %Place, ptr %p.place, i64 0, i32 3
  %p.asleep = load atomic i64, ptr %p.asleep.slot seq_cst, align 8
  %sleepers.next = or i64 %sleepers, %p.asleep
  %p.sleeps = icmp ne i64 %p.asleep, 0
  %p.rouse = and i1 %p.sleeps, %rousing
  br i1 %p.rouse, label %call.it, label %posted

call.it:
  call void @wake(ptr %p.place)
  br label %posted

posted:
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %regions
  br i1 %p.more, label %post, label %own.part

own.part:
  call void @work(ptr %team, i64 0)
  br label %collect

collect:
  %c = phi i64 [ 1, %own.part ], [ %c.next, %collected ]
  %c.place = call ptr @place(ptr %team, i64 %c)
  %withdrawal = cmpxchg ptr %c.place, i64 1, i64 0 seq_cst seq_cst
  br label %await

await:
  %c.state = load atomic i64, ptr %c.place seq_cst, align 8
  %c.idle = icmp eq i64 %c.state, 0
  br i1 %c.idle, label %collected, label %hold

hold:
  call void @pause()
  br label %await

collected:
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, %regions
  br i1 %c.more, label %collect, label %finish

finish:
  %restored = call i32 @fesetenv(ptr %environment)
  %raised = load i64, ptr %raised.slot
  store atomic i64 0, ptr %team seq_cst, align 8
  %unheard = xor i1 %rousing, true
  %some.slept = icmp ne i64 %sleepers.next, 0
  %slept = and i1 %some.slept, %unheard
  %mark = select i1 %slept, i64 65536, i64 0
  %result = or i64 %raised, %mark
  ret i64 %result
}

; Apply a loop to arrays of one shape, or of none, with at most so many threads. Return what @dispatch does; -2 if NumPy
; would have to convert or broadcast an operand, if there are gaps within rows, or if the rows are short.
define i64 @apply(ptr %team, ptr %loop, ptr %x, ptr %y, ptr %out, i64 %threads, i64 %rouse) {
entry:
  %job = alloca %Job
  %size.slot = getelementptr %Loop, ptr %loop, i64 0, i32 2
  %size = load i64, ptr %size.slot
  %operands.slot = getelementptr %Loop, ptr %loop, i64 0, i32 3
  %operands = load i64, ptr %operands.slot
  %single = icmp eq i64 %operands, 1
  %second = select i1 %single, ptr %out, ptr %y
  %x.stride = call i64 @stride(ptr %x, ptr %out, i64 %size)
  %second.stride = call i64 @stride(ptr %second, ptr %out, i64 %size)
  %out.stride = call i64 @stride(ptr %out, ptr %out, i64 %size)
  %strides = or i64 %x.stride, %second.stride
  %all.strides = or i64 %strides, %out.stride
  %unsuitable = icmp slt i64 %all.strides, 0
  br i1 %unsuitable, label %refuse, label %prepare

refuse:
  ret i64 -2

prepare:
  %count = call i64 @elements(ptr %out)
  %x.gaps = call i1 @gaps(ptr %x)
  %second.gaps = call i1 @gaps(ptr %second)
  %out.gaps = call i1 @gaps(ptr %out)
  %operand.gaps = or i1 %x.gaps, %second.gaps
  %any.gaps = or i1 %operand.gaps, %out.gaps
  %shape.slot = getelementptr %Array, ptr %out, i64 0, i32 3
  %shape = load ptr, ptr %shape.slot
  %rank.slot = getelementptr %Array, ptr %out, i64 0, i32 2
  %rank = load i32, ptr %rank.slot
  %last = sub i32 %rank, 1
  %last.slot = getelementptr i64, ptr %shape, i32 %last
  %last.length = load i64, ptr %last.slot
  %row = select i1 %any.gaps, i64 %last.length, i64 %count
  %axes = select i1 %any.gaps, i32 %last, i32 0
  %short = icmp ult i64 %row, 64
  %worth = lshr i64 %count, 14
  %few = icmp ult i64 %worth, %threads
  %regions = select i1 %few, i64 %worth, i64 %threads
  %too.few = icmp ult i64 %regions, 2
  %not.worth.it = or i1 %short, %too.few
  br i1 %not.worth.it, label %refuse, label %run

run:
  store ptr %loop, ptr %job
  %count.slot = getelementptr %Job, ptr %job, i64 0, i32 1
  store i64 %count, ptr %count.slot
  %row.slot = getelementptr %Job, ptr %job, i64 0, i32 4
  store i64 %row, ptr %row.slot
  %axes.slot = getelementptr %Job, ptr %job, i64 0, i32 5
  store i32 %axes, ptr %axes.slot
  %job.shape.slot = getelementptr %Job, ptr %job, i64 0, i32 6
  store ptr %shape, ptr %job.shape.slot
  call void @put(ptr %job, i64 0, ptr %x, i64 %x.stride)
  call void @put(ptr %job, i64 1, ptr %second, i64 %second.stride)
  call void @put(ptr %job, i64 2, ptr %out, i64 %out.stride)
  %result = call i64 @dispatch(ptr %team, ptr %job, i64 %regions, i64 %rouse)
  ret i64 %result
}

; Put an array into a job.
define internal void @put(ptr %job, i64 %place, ptr %array, i64 %stride) {
  %data.slot = getelementptr %Array, ptr %array, i64 0, i32 1
  %data = load i64, ptr %data.slot
  %address.slot = getelementptr %Job, ptr %job, i64 0, i32 2, i64 %place
  store i64 %data, ptr %address.slot
  %stride.slot = getelementptr %Job, ptr %job, i64 0, i32 3, i64 %place
  store i64 %stride, ptr %stride.slot
  %strides.slot = getelementptr %Array, ptr %array, i64 0, i32 4
  %strides = load ptr, ptr %strides.slot
  %number = icmp eq i64 %stride, 0
  %jumps = select i1 %number, ptr null, ptr %strides
  %jumps.slot = getelementptr %Job, ptr %job, i64 0, i32 7, i64 %place
  store ptr %jumps, ptr %jumps.slot
  ret void
}

; Whether an array is not C-contiguous.
define internal i1 @gaps(ptr %array) {
  %flags.slot = getelementptr %Array, ptr %array, i64 0, i32 7
  %flags = load i32, ptr %flags.slot
  %dense = and i32 %flags, 1
  %gaps = icmp eq i32 %dense, 0
  ret i1 %gaps
}

; How many elements an array has.
define internal i64 @elements(ptr %array) {
entry:
  %rank.slot = getelementptr %Array, ptr %array, i64 0, i32 2
  %rank = load i32, ptr %rank.slot
  %shape.slot = getelementptr %Array, ptr %array, i64 0, i32 3
  %shape = load ptr, ptr %shape.slot
  br label %axis

axis:
  %number = phi i32 [ 0, %entry ], [ %next, %multiply ]
  %product = phi i64 [ 1, %entry ], [ %larger, %multiply ]
  %more = icmp ult i32 %number, %rank
  br i1 %more, label %multiply, label %end

multiply:
  %length.slot = getelementptr i64, ptr %shape, i32 %number
  %length = load i64, ptr %length.slot
  %larger = mul i64 %product, %length
  %next = add i32 %number, 1
  br label %axis

end:
  ret i64 %product
}

; The bytes from one element of an operand to the next: the element size where it has the result's shape, 0 where it has
; no dimensions; -1 if it does not suit. Strides must fall from axis to axis, so that NumPy's result is C-contiguous.
define internal i64 @stride(ptr %array, ptr %out, i64 %size) {
entry:
  %dtype.slot = getelementptr %Array, ptr %array, i64 0, i32 6
  %dtype = load ptr, ptr %dtype.slot
  %out.dtype.slot = getelementptr %Array, ptr %out, i64 0, i32 6
  %out.dtype = load ptr, ptr %out.dtype.slot
  %alike = icmp eq ptr %dtype, %out.dtype
  %flags.slot = getelementptr %Array, ptr %array, i64 0, i32 7
  %flags = load i32, ptr %flags.slot
  %aligned = and i32 %flags, 256
  %is.aligned = icmp ne i32 %aligned, 0
  %suitable = and i1 %alike, %is.aligned
  br i1 %suitable, label %measure, label %no

measure:
  %rank.slot = getelementptr %Array, ptr %array, i64 0, i32 2
  %rank = load i32, ptr %rank.slot
  %out.rank.slot = getelementptr %Array, ptr %out, i64 0, i32 2
  %out.rank = load i32, ptr %out.rank.slot
  %shape.slot = getelementptr %Array, ptr %array, i64 0, i32 3
  %shape = load ptr, ptr %shape.slot
  %out.shape.slot = getelementptr %Array, ptr %out, i64 0, i32 3
  %out.shape = load ptr, ptr %out.shape.slot
  %none = icmp eq i32 %rank, 0
  br i1 %none, label %number, label %compare

number:
  ret i64 0

compare:
  %same = icmp eq i32 %rank, %out.rank
  br i1 %same, label %axis, label %no

axis:
  %index = phi i32 [ 0, %compare ], [ %next, %equal ]
  %length.slot = getelementptr i64, ptr %shape, i32 %index
  %length = load i64, ptr %length.slot
  %out.length.slot = getelementptr i64, ptr %out.shape, i32 %index
  %out.length = load i64, ptr %out.length.slot
  %fits = icmp eq i64 %length, %out.length
  br i1 %fits, label %equal, label %no

equal:
  %next = add i32 %index, 1
  %more = icmp ult i32 %next, %rank
  br i1 %more, label %axis, label %of.one.shape

of.one.shape:
  %gaps = call i1 @gaps(ptr %array)
  %strides.slot = getelementptr %Array, ptr %array, i64 0, i32 4
  %strides = load ptr, ptr %strides.slot
  br i1 %gaps, label %fall, label %yes

fall:
  %outer = phi i32 [ %rank, %of.one.shape ], [ %inner, %again ]
  %least = phi i64 [ %size, %of.one.shape ], [ %stride, %again ]
  %inner = sub i32 %outer, 1
  %stride.slot = getelementptr i64, ptr %strides, i32 %inner
  %stride = load i64, ptr %stride.slot
  %rises = icmp sge i64 %stride, %least
  br i1 %rises, label %falls, label %no

falls:
  %last = icmp eq i32 %outer, %rank
  %exact = icmp eq i64 %stride, %size
  %inner.gaps = xor i1 %exact, true
  %bad = and i1 %last, %inner.gaps
  br i1 %bad, label %no, label %continue

continue:
  %further = icmp ugt i32 %inner, 0
  br i1 %further, label %again, label %yes

again:
  br label %fall

yes:
  ret i64 %size

no:
  ret i64 -1
}

; Look for work that never comes; how long this takes tells what a worker's patience is worth.
define void @linger(i64 %looks) {
entry:
  br label %look

look:
  %look.number = phi i64 [ 0, %entry ], [ %next, %look ]
  call void @pause()
  %next = add i64 %look.number, 1
  %more = icmp ult i64 %next, %looks
  br i1 %more, label %look, label %end

end:
  ret void
}
