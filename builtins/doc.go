// Package builtins is what a .star file can call. Every function, namespace and constant is declared once: as a
// [spec.Spec] of its family, with its name, parameters, the phases in which it may be called, its effect, and the Go
// function behind it. [Table] lists the families; those that reach no [Context] are packages below this one, which know
// spec alone. [Predeclared] makes the Starlark values; what people read of them is in builtins/docs.
//
// A builtin reaches the world through the [Context] that its thread carries, and through nothing else:
//
//	phase    called while            Context.File    Context.Run
//	load     a file is loaded        collects        -
//	filter   a watch sees an object  -               -
//	run      a hook runs             -               reads, records effects
//	enabled  enabled() decides       -               reads values
//	desired  a controller decides    -               -
//
// Loading collects declarations: module() fills File.Module, hook() appends to File.Hooks. A run records what the hook
// asks for in Run.Effects and touches nothing; grants, sizes and counts are checked at the call, so an error points at
// the line. The caller commits Run.Effects if, and only if, the hook returned without an error. Callers find more of it
// with errors.As: [FailError], [spec.LimitError].
//
// A Context, and so a Run, serves one thread at a time. The values of Predeclared and [NewCtx] are frozen and may be
// shared.
package builtins
