package clients

import (
	"os"
	"regexp"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// vim is what takes each call and each assignment of a configuration; functions that it is given are called.
const vim = `
vim = {}
local any = {}
any.__index = function() return vim end
any.__newindex = function() end
any.__call = function(_, ...)
  for _, given in ipairs({...}) do
    if type(given) == "table" and getmetatable(given) == nil and given.callback then
      given.callback({ buf = 1, match = "addons/web/module.star" })
    end
  end
  return 1
end
setmetatable(vim, any)
`

// Each configuration in Lua of a page runs, as far as it goes without its editor.
func TestLuaInDocsRuns(t *testing.T) {
	page, err := os.ReadFile("../../docs/editors.md")
	if err != nil {
		t.Fatal(err)
	}
	fences := regexp.MustCompile("(?ms)^```lua\n(.*?)^```").FindAllSubmatch(page, -1)
	if len(fences) == 0 {
		t.Error("docs/editors.md has none")
	}
	for _, fence := range fences {
		l := lua.NewState()
		if err := l.DoString(vim); err != nil {
			t.Fatal(err)
		}
		if err := l.DoString(string(fence[1])); err != nil {
			t.Errorf("%v in\n%s", err, fence[1])
		}
		l.Close()
	}
}
