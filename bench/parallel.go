package main

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// parallel calls do for 0 to n-1 with several workers.
func parallel(ctx context.Context, workers, n int, do func(i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}
