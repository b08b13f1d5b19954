package record

import (
	"bytes"
	"testing"
)

// The files in testdata/before are those of a run that the first starling with this Format has written: they are read
// for as long as the Format stays. Its hook asks all that a hook can ask, and its key has 32 sevens.
func TestARecordOfBeforeIsRead(t *testing.T) {
	key, err := ParseKey(bytes.Repeat([]byte{7}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load("testdata/before", "test-1", key)
	if err != nil {
		t.Fatal(err)
	}
	if again := replayed(t, r, ReplayOptions{}); !again.Same || again.Error != "" {
		t.Errorf("it comes to %+v, and was %+v", again, r.Outcome)
	}
	run, lines, err := r.Written()
	if err != nil || len(lines) < 9 {
		t.Fatal(lines, err)
	}
	back, err := readWritten(Slim(run))
	if err != nil || len(back.reads) != len(r.reads) || len(back.request.Events) != 1 || len(back.request.Snapshots["nodes"]) != 2 || back.request.Object == nil {
		t.Errorf("as a test it is %+v, %v", back, err)
	}
	if dump, err := r.Dump(); err != nil || len(dump.Reads) < 10 || dump.Inputs.Object == nil {
		t.Errorf("it is shown as %+v, %v", dump, err)
	}
}
