package subjects

import "testing"

func TestTheFirstRunOfASubject(t *testing.T) {
	fail := func(t *Set) { t.Fail(t.own, "boom", false) }
	allowed := func(t *Set) { t.Fail(t.own, "boom", true) }
	succeed := func(t *Set) { t.Succeed(t.own) }
	for _, c := range []struct {
		name          string
		steps         []func(*Set)
		tried, passed bool
	}{
		{"nothing", nil, false, false},
		{"fails", []func(*Set){fail}, true, false},
		{"fails, and may", []func(*Set){allowed}, true, true},
		{"succeeds", []func(*Set){fail, succeed}, true, true},
		{"fails later", []func(*Set){succeed, fail}, true, true},
		{"has other code", []func(*Set){succeed, (*Set).Renew}, false, true},
		{"has other code twice", []func(*Set){succeed, (*Set).Renew, (*Set).Renew}, false, true},
		{"fails with other code", []func(*Set){succeed, (*Set).Renew, fail}, true, true},
		{"has failed with the code before", []func(*Set){fail, (*Set).Renew}, false, false},
		{"another life", []func(*Set){succeed, (*Set).Reset}, false, false},
	} {
		hook := New("web/a", false)
		for _, step := range c.steps {
			step(hook)
		}
		if f := hook.First(); f.Tried() != c.tried || f.Passed() != c.passed {
			t.Errorf("%s: tried %t, passed %t", c.name, f.Tried(), f.Passed())
		}
	}
}

// A hook with for_each was tried once all objects of the first snapshot were, or wait no more;
// those that fail do not count.
func TestTheFirstRunOfAHookWithForEach(t *testing.T) {
	hook := objects("w", "x", "y", "z")
	if !hook.Begin(func(s *Subject) bool { return s.Key != "w" }) || hook.Begin(nil) {
		t.Fatal("the first snapshot is another one")
	}
	for _, step := range []func(){
		func() { hook.Fail(hook.At("x"), "boom", false) },
		func() { hook.Observe(Object{Name: "y", Lacks: true}, false) },
		func() { hook.Drop(hook.At("z")) },
	} {
		if hook.First() != Untried {
			t.Fatal("it was tried too early")
		}
		step()
	}
	if hook.First() != HasSucceeded {
		t.Error("it was not tried")
	}
	hook.Renew()
	if hook.First() != Renewed || !hook.Begin(func(*Subject) bool { return false }) || hook.First() != HasSucceeded {
		t.Error("other code has no first snapshot")
	}
	if New("web/a", false).Begin(nil) {
		t.Error("a hook without for_each waits for objects")
	}
}

func TestWhatFails(t *testing.T) {
	hook := objects("x", "y", "z")
	hook.Fail(hook.At("y"), "boom", false)
	if got := hook.Failure(); got != "y: boom" {
		t.Error(got)
	}
	hook.Fail(hook.At("x"), "bad", false)
	if got := hook.Failure(); got != "x: bad (and 1 other object fails)" {
		t.Error(got)
	}
	if !hook.Answer(hook.At("z"), "boom") || hook.Answer(hook.At("z"), "boom") || hook.At("z").first != Untried {
		t.Error("a run that was asked for counts as another one, or not at all")
	}
	if got := hook.Failure(); got != "x: bad (and 2 other objects fail)" {
		t.Error(got)
	}
	if !hook.Succeed(hook.At("x")) || hook.Succeed(hook.At("x")) {
		t.Error("it does not say what runs again")
	}
	hook.Drop(hook.At("y"))
	if got := hook.Failing(); len(got) != 1 || got[0].Key != "z" || got[0].Why() != "boom" {
		t.Errorf("failing %v", got)
	}
	if hook.Renew(); hook.Failure() != "" || hook.At("z").Why() != "" {
		t.Error("a failure of other code is left")
	}
}
