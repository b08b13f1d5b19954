package script

import (
	"context"
	"time"
)

type meter struct{}

// Metered returns a context whose calls tell what each of them has used, as it ends.
func Metered(ctx context.Context, used func(Usage)) context.Context {
	return context.WithValue(ctx, meter{}, used)
}

type charged struct{}

// Charged returns a context whose runs tell, each second, what they go on to compute once
// they have been given up, and for which module.
func Charged(ctx context.Context, charge func(module string, computed time.Duration)) context.Context {
	return context.WithValue(ctx, charged{}, charge)
}
