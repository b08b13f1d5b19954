package hostile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// little is an eighth of the Deployment's limit.
const little = 128 << 20

// objects makes so many ConfigMaps of a KiB each.
func objects(t *testing.T, ns string, n int) {
	t.Helper()
	config := rest.CopyConfig(shared.Config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	text, next, failed := strings.Repeat("x", 1024), make(chan int, n), make(chan error, n)
	for i := range n {
		next <- i
	}
	close(next)
	began := time.Now()
	for range 32 {
		go func() {
			for i := range next {
				_, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("object-", i), Labels: map[string]string{"of": "many"}}, Data: map[string]string{"text": text}}, metav1.CreateOptions{})
				failed <- err
			}
		}()
	}
	for range n {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d objects made in %s", n, time.Since(began).Round(time.Second))
}

// noise is text that does not become smaller when it is packed.
func noise(seed uint64, size int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	dice, b := rand.New(rand.NewPCG(seed, 0)), make([]byte, size)
	for i := range b {
		b[i] = letters[dice.IntN(len(letters))]
	}
	return string(b)
}

// bulky is a module whose chart has five files of 1 MiB each, which text makes, and which its template shows a part of.
func bulky(name string, text func(i int) string, says ...string) attack {
	files := map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {size: {{ .Files.Get \"part0.txt\" | len | quote }}}\n",
		"Chart.yaml": "{apiVersion: v2, name: " + name + ", version: 0.1.0}\n"}
	for i := range 5 {
		files[fmt.Sprintf("part%d.txt", i)] = text(i)
	}
	return attack{name: name, files: files, says: says}
}

// copied has the group pay for the pages of the program, as a container does: those of the one that was built here
// are in memory already.
func (a *arena) copied() {
	a.t.Helper()
	program := os.Getenv("STARLING_BIN")
	if program == "" {
		program = filepath.Join("..", "..", "bin", "starling")
	}
	to := filepath.Join(a.t.TempDir(), "starling")
	name, args := a.memory.Command("/bin/cp", program, to)
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		a.t.Fatalf("%v: %s", err, out)
	}
	a.t.Setenv("STARLING_BIN", to)
}

// In an eighth of the Deployment's memory hooks that keep little of many objects work, and charts of 5 MiB are released:
// all else is refused with its name, and the kernel has nothing to kill.
func TestLittleMemory(t *testing.T) {
	a := newArenaOf(t, little)
	if a.memory == nil {
		t.Skip("there is no memory cgroup")
	}
	a.copied()
	const many = 20_000
	objects(t, a.ns, many)
	a.start()
	a.waitBeat()
	rows := []attack{
		{name: "counts", files: map[string]string{
			"module.star": "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n",
			"hooks/a.star": "def count(ctx):\n    k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"count\"}, \"data\": {\"n\": str(len(ctx.snapshots[\"all\"]))}})\n\n" +
				"hook(count, on = [k8s.watch(\"v1\", \"ConfigMap\", name = \"all\", namespaces = [\"$NS\"], labels = {\"of\": \"many\"}, filter = lambda o: o.metadata.name)])\n"}},
		{name: "whole", files: map[string]string{"hooks/a.star": watchAll("labels = {\"of\": \"many\"}")}, says: []string{"stopped: its objects take more than the"}},
		bulky("packs-well", func(int) string { return strings.Repeat("a line that is there again and again\n", (1<<20)/37) }),
		bulky("packs-badly", func(i int) string { return noise(uint64(i), 1<<20-1) }, "KiB of its Secret's 1024 KiB"),
		chart("makes-much", "{{ range $i, $x := until 200 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: large-{{ $i }}}\ndata: {text: {{ repeat 400000 \"y\" }}}\n{{ end }}",
			"it takes more than 32 MiB of memory"),
	}
	began := time.Now()
	for _, row := range rows {
		a.write(row.tree())
	}
	for _, row := range rows {
		a.waitSays(row)
	}
	a.eventually("all objects are counted", func() error {
		cm, err := shared.Client.CoreV1().ConfigMaps(a.ns).Get(t.Context(), "count", metav1.GetOptions{})
		if err == nil && cm.Data["n"] != fmt.Sprint(many) {
			err = fmt.Errorf("%s are counted", cm.Data["n"])
		}
		return err
	})
	a.eventually("one chart is released, and no release is under way", func() error {
		records, err := shared.Client.CoreV1().Secrets(a.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
		if err == nil && (len(records.Items) != 1 || records.Items[0].Labels["name"] != "packs-well" || records.Items[0].Labels["status"] != "deployed") {
			err = fmt.Errorf("there are %d records", len(records.Items))
		}
		return err
	})
	t.Logf("%d objects and the charts took %s", many, time.Since(began).Round(time.Second))
	a.waitBeat()
	a.stop()
	if n, err := a.memory.Kills(); err != nil || n > 0 {
		t.Errorf("the kernel has killed %d processes: %v", n, err)
	}
}
