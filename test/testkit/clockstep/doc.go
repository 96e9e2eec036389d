// Package clockstep steps the wall clock of one running process, from outside, as a bad time server or an operator
// would step that of its machine. The process's monotonic clock, and the clocks of all others, stay as they are.
//
// A process asks the kernel for the time through a small library that the kernel maps into it, the vDSO. Step changes
// that process's copy of clock_gettime, so it works on any binary, also on a static one. Linux on amd64 only, as root.
//
// It has no state but the process's.
package clockstep
