package process

import (
	"testing"
	"testing/fstest"
)

func TestLimitOfGo(t *testing.T) {
	for cgroup, want := range map[int64]int64{1000 << 20: 880 << 20, 512 << 20: 424 << 20, 128 << 20: 40 << 20, 64 << 20: leastOfGo} {
		if got := limitOfGo(cgroup); got>>20 != want>>20 {
			t.Errorf("of %d MiB %d MiB are Go's, want %d", cgroup>>20, got>>20, want>>20)
		}
	}
}

func TestCgroupLimit(t *testing.T) {
	const none = "9223372036854771712\n"
	for name, tt := range map[string]struct {
		own   string
		files map[string]string
		want  int64
	}{
		"version 2":                   {"0::/\n", map[string]string{"memory.max": "1073741824\n"}, 1 << 30},
		"version 2, below":            {"0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "2000\n", "a/b/memory.low": "1\n"}, 2000},
		"version 2, seen from within": {"0::/kubepods/pod1\n", map[string]string{"memory.max": "3000\n"}, 3000},
		"version 1":                   {"4:memory:/a\n0::/\n", map[string]string{"memory/a/memory.limit_in_bytes": "5000\n", "memory/memory.limit_in_bytes": none}, 5000},
		"version 1, two together":     {"3:cpu,memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "6000\n"}, 6000},
		"the least counts":            {"4:memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "5000\n", "memory/memory.limit_in_bytes": "4000\n"}, 4000},
		"none":                        {"4:memory:/a\n0::/\n", map[string]string{"memory/a/memory.limit_in_bytes": none, "memory.max": "max\n"}, 0},
		"nothing to read":             {"nonsense", nil, 0},
	} {
		root := fstest.MapFS{}
		for path, text := range tt.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroupLimit(root, tt.own); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
