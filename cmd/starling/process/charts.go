package process

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/chart"
)

// evaluateCharts is the command of the processes that evaluate charts.
const evaluateCharts = "evaluate-charts"

// NewRenderer evaluates charts in processes of this binary.
func NewRenderer() *chart.Renderer {
	return chart.NewRenderer(chart.RendererOptions{Command: func() *exec.Cmd {
		self := "/proc/self/exe" // this binary, whatever lies at its path by now
		if _, err := os.Stat(self); err != nil {
			self = os.Args[0]
			if path, err := os.Executable(); err == nil {
				self = path
			}
		}
		cmd := exec.Command(self)
		// By this name the program is starling even where it is a test binary, which would
		// run its tests instead, and they would start more of it.
		cmd.Args = []string{"starling", evaluateCharts}
		// Nothing of this process's environment is for charts, but the zone of their times.
		cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
		if zone, set := os.LookupEnv("TZ"); set {
			cmd.Env = append(cmd.Env, "TZ="+zone)
		}
		return cmd
	}})
}

// NewEvaluateChartsCommand returns the command of those processes.
func NewEvaluateChartsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    evaluateCharts,
		Short:  "Evaluate charts for the process that has started this one",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A terminal sends these to all its processes; this one ends with its parent.
			signal.Ignore(os.Interrupt, syscall.SIGTERM)
			return chart.ServeCharts(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
