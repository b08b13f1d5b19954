package effect

import "cmp"

// Cause says which runs have led to a write, and to the event that tells of it. A row of runs in which each was
// brought about by what the one before it has written may be as long as it likes: a Cause stays as small. Of the runs
// in the row it remembers one, and how often that came back; one that does not come back gives way to a later one,
// after twice as many runs each time. So a row that goes round is found, however many hooks it goes through. A nil
// Cause is that of whatever Starling has not brought about.
type Cause struct {
	// Run names what the last run was about: a hook, or one object of it.
	Run string
	// Depth is how many runs have led here.
	Depth int
	// Back is the run that is remembered, and Rounds how often it was in the row.
	Back   string
	Rounds int
	// Stage is that whose hooks the last run was one of, or "", and Again how many runs in a row
	// were. Nobody waits for a row of those: it is ended.
	Stage string
	Again int
	// OfStages is how many runs in a row, up to the last one, were part of any stage.
	OfStages int
	// At is where Back was last, and Reach how many runs are waited for it.
	At, Reach int
	// Pos is the "file:line" of the write, where it is known: for people.
	Pos string
}

// Of is the cause of the event of one write of the run; pos is the "file:line" of the write.
func (c *Cause) Of(pos string) *Cause {
	if c == nil || pos == "" {
		return c
	}
	of := *c
	of.Pos = pos
	return &of
}

// Then is the cause of what a run writes that c has brought about. Waits says whether the run
// could have been made to wait: no other is remembered. Stage is the one that it was part of, or "".
func (c *Cause) Then(run string, waits bool, stage string) *Cause {
	next := Cause{Reach: 1}
	if c != nil {
		next = *c
	}
	next.Stage, next.Again = stage, c.InARow(stage)+1
	if next.OfStages++; stage == "" {
		next.OfStages = 0
	}
	next.Run, next.Pos = run, ""
	next.Depth++
	switch {
	case waits && run == next.Back:
		next.Rounds++
		next.At = next.Depth
	case waits && (next.Back == "" || next.Depth-next.At > next.Reach):
		next.Back, next.Rounds, next.At, next.Reach = run, 1, next.Depth, 2*next.Reach
	}
	return &next
}

// Round is how often a run is known to have led to itself.
func (c *Cause) Round(run string) int {
	if c == nil || c.Back != run {
		return 0
	}
	return c.Rounds
}

// InARow is how many runs in a row were part of a stage, up to the last one.
func (c *Cause) InARow(stage string) int {
	if c == nil || c.Stage != stage {
		return 0
	}
	return c.Again
}

// Row is how many runs in a row were part of stages, up to the last one.
func (c *Cause) Row() int {
	if c == nil {
		return 0
	}
	return c.OfStages
}

// Compare orders causes by the length of the row, then by what is known of it.
func (c *Cause) Compare(other *Cause) int {
	switch {
	case c == nil && other == nil:
		return 0
	case c == nil:
		return -1
	case other == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(c.Depth, other.Depth), cmp.Compare(c.Rounds, other.Rounds), cmp.Compare(c.Back, other.Back), cmp.Compare(c.Run, other.Run))
}
