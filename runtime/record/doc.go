// Package record is the flight recorder: it keeps the last runs of hooks with all that
// they were given and all that they asked for, and plays one again without a cluster.
//
// A run leaves a [Trace] behind, pointers to data that nobody changes. A [Recorder]
// makes files of traces, beside the lanes: one for the run, and one for each larger
// part of it, named by a keyed hash of what it holds, so that a hundred runs on one
// snapshot keep it once. All but a run's [Header] is encrypted, with a [Key] that is
// not kept beside the files. [Load] reads a run back, [Replay] runs it again.
//
// The id of a run is "<process>-<number>": four characters that each process makes up
// when it starts, and the number that the engine gives the run (engine.RunHook.Run).
package record
