package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Starling is killed as a hook changes the user's config, before the write reaches the API server or before
// its answer is here. The next process has the value there, beside all that the user says, and made once.
func TestKilledAtAChangeOfTheConfig(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", after), func(t *testing.T) {
			t.Parallel()
			testKilledAtAChangeOfTheConfig(t, after)
		})
	}
}

func testKilledAtAChangeOfTheConfig(t *testing.T, after bool) {
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	f.write(map[string]string{
		"web/module.star": "module(enabled = True, config = [\"password\"])\n",
		"web/hooks/a.star": `
def password(ctx):
    if config.get("password") == None:
        config.set("password", random.string(20))

hook(password, on = [startup()])
`,
	})
	f.grantPrinted()
	f.configure(map[string]string{"web": "# of the team\nreplicas: 2\n"})
	r := newKiller(t, f, func(path string) bool { return strings.HasSuffix(path, "/configmaps/starling") })
	section := func() string {
		cm, err := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), "starling", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm.Data["web"]
	}
	before := r.KillAt(1, after, func() { f.start() })
	f.eventually("the process is killed", func() error {
		if r.Killed() == before {
			return errors.New("it lives")
		}
		return nil
	})
	r.Spare()
	f.process.Kill()
	first := section()
	if strings.Contains(first, "password") != after {
		t.Errorf("written %t: %s", after, first)
	}
	f.freeLease()
	f.start()
	f.waitReady()
	f.eventually("the password is there", func() error {
		if text := section(); !strings.Contains(text, "password: ") || !strings.HasPrefix(text, "# of the team\nreplicas: 2\n") {
			return errors.New(text)
		}
		return nil
	})
	if last := section(); after && last != first {
		t.Errorf("%s became %s", first, last)
	}
}
