package operator

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/runtime/live"
)

// leaseFlags are the times of the Lease.
type leaseFlags struct{ times live.LeaseTimes }

func (f *leaseFlags) addFlags(fs *pflag.FlagSet) {
	usual := live.DefaultLeaseTimes()
	fs.DurationVar(&f.times.Duration, "lease-duration", usual.Duration, "`time` after which a process that has crashed is followed by another one, in whole seconds")
	fs.DurationVar(&f.times.Renew, "lease-renew", usual.Renew, "`time` for which a process tries to renew its Lease before it stands by")
	fs.DurationVar(&f.times.Retry, "lease-retry", usual.Retry, "`time` between two renewals of the Lease, and between two tries to get it")
}

func (f *leaseFlags) check() error {
	if err := f.times.Check(); err != nil {
		return fmt.Errorf("--lease-duration, --lease-renew, --lease-retry: %w", err)
	}
	return nil
}
