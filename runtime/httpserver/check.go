package httpserver

import (
	"net/http"
	"time"
)

// precheck refuses what cannot be rightly signed before its body is read. Where the
// headers hold the secret itself they say it all.
func (s *Server) precheck(r *http.Request, to *route) (proof, error) {
	if to.secret == nil {
		return proof{}, nil
	}
	p, ok := proofOf(to.decl, r, time.Now())
	if !ok {
		return p, s.unsigned(r, to)
	}
	if p.token == "" {
		return p, nil
	}
	_, err := s.fits(r, to, p, nil)
	return p, err
}

// check refuses what is not signed with the secret, or was taken before. The request that
// it returns must be ended; it may be nil.
func (s *Server) check(r *http.Request, to *route, p proof, body []byte) (*request, error) {
	if to.secret == nil || p.token != "" {
		return nil, nil
	}
	sum, err := s.fits(r, to, p, body)
	if err != nil || p.handed { // whoever sends a token may send the same again
		return nil, err
	}
	now := time.Now()
	until := now.Add(to.decl.Once)
	if !p.at.IsZero() {
		until = p.at.Add(maxSkew + time.Second)
	}
	if !until.After(now) {
		return nil, nil
	}
	mark, known := to.taken.begin(sum, now, until)
	switch known {
	case before: // its sender may not know
		return nil, &refusal{code: http.StatusOK, text: "this request was taken before"}
	case underWay:
		return nil, &refusal{http.StatusServiceUnavailable, "this request is being answered, try again later", time.Second}
	}
	return mark, nil
}

// fits returns what shows that the sender knows the secret. A signature that does not fit
// may be one of a newer secret.
func (s *Server) fits(r *http.Request, to *route, p proof, body []byte) ([]byte, error) {
	for _, most := range []time.Duration{secretFor, secretAtLeast} {
		value, err := to.secret.get(r.Context(), most)
		if err != nil {
			to.troubles.Do(func() {
				s.o.Log.Error().Str("module", to.module).Str("hook", to.hook).Err(err).Msg("requests to " + to.decl.Path + " cannot be checked, and are refused")
			})
			return nil, &refusal{http.StatusServiceUnavailable, "requests cannot be checked now, try again later", tryAgain}
		}
		if sum := p.fits(body, value); sum != nil {
			return sum, nil
		}
	}
	return nil, s.unsigned(r, to)
}

func (s *Server) unsigned(r *http.Request, to *route) error {
	to.refusals.Do(func() {
		s.o.Log.Warn().Str("module", to.module).Str("hook", to.hook).Str("from", r.RemoteAddr).Msg("a request to " + to.decl.Path + " is not signed with the secret, or too long ago, and refused")
	})
	return &refusal{code: http.StatusUnauthorized, text: "the signature is missing, wrong or too old"}
}
