package script

import "context"

type meter struct{}

// Metered returns a context whose calls tell what each of them has used, as it ends.
func Metered(ctx context.Context, used func(Usage)) context.Context {
	return context.WithValue(ctx, meter{}, used)
}
