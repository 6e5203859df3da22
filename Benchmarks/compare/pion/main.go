// A forwarder built with Pion like Pion's own examples, to compare Nagare with: WHIP in, WHEP out, one publisher per
// channel, any number of viewers. Interceptors, socket handling and SRTP are Pion's defaults. It forwards without a jitter
// buffer, and logs and counts nothing per packet.
//
// ops/build-go makes it from Debian's golang-github-pion-webrtc.v3-dev.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pion/dtls/v2"
	"github.com/pion/ice/v2"
	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v3"
)

const (
	// Longer offers are not SDP.
	offerBytesMax = 256 * 1024
	// The minimum time between two key frame requests.
	keyFrameSpacing = 500 * time.Millisecond
	// The longest packet of a network with an MTU of 1500 bytes.
	packetBytesMax = 1500
)

// channel is a publisher and its tracks.
type channel struct {
	publisher *webrtc.PeerConnection
	tracks    []*webrtc.TrackLocalStaticRTP

	mutex        sync.Mutex
	videoSSRC    uint32
	lastKeyFrame time.Time
	// A request is scheduled.
	keyFrameDue bool
}

// server holds all channels and sessions.
type server struct {
	api *webrtc.API

	mutex    sync.Mutex
	channels map[string]*channel
	sessions map[string]*webrtc.PeerConnection
	number   int
}

func main() {
	address := flag.String("address", "127.0.0.1", "the address for HTTP and for media")
	port := flag.Int("port", 8081, "the port for HTTP")
	profile := flag.String("srtp-profile", "any", "gcm, cm or any: the SRTP profiles to accept")
	flag.Parse()
	if err := run(*address, *port, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(address string, port int, profile string) error {
	ip := net.ParseIP(address)
	if ip == nil {
		return fmt.Errorf("%q is not an address", address)
	}
	api, err := makeAPI(ip, profile)
	if err != nil {
		return err
	}
	s := &server{api: api, channels: map[string]*channel{}, sessions: map[string]*webrtc.PeerConnection{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/whip/", s.create(s.publish))
	mux.HandleFunc("/whep/", s.create(s.watch))
	mux.HandleFunc("/sessions/", s.end)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	failed := make(chan error, 1)
	go func() { failed <- http.Serve(listener, mux) }()
	select {
	case err := <-failed:
		return err
	case <-stop:
		return nil
	}
}

// makeAPI sets Pion up as a server on one address.
func makeAPI(ip net.IP, profile string) (*webrtc.API, error) {
	media := &webrtc.MediaEngine{}
	if err := media.RegisterDefaultCodecs(); err != nil {
		return nil, err
	}
	// Retransmission, reports, transport-wide feedback.
	interceptors := &interceptor.Registry{}
	if err := webrtc.RegisterDefaultInterceptors(media, interceptors); err != nil {
		return nil, err
	}
	settings := webrtc.SettingEngine{}
	settings.SetLite(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	settings.SetIPFilter(func(candidate net.IP) bool { return candidate.Equal(ip) })
	settings.SetIncludeLoopbackCandidate(ip.IsLoopback())
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	switch profile {
	case "gcm":
		settings.SetSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM)
	case "cm":
		settings.SetSRTPProtectionProfiles(dtls.SRTP_AES128_CM_HMAC_SHA1_80)
	case "any":
	default:
		return nil, fmt.Errorf("%q is not an SRTP profile", profile)
	}
	return webrtc.NewAPI(
		webrtc.WithMediaEngine(media),
		webrtc.WithInterceptorRegistry(interceptors),
		webrtc.WithSettingEngine(settings),
	), nil
}

// refusal is an error with its HTTP status.
type refusal struct {
	status int
	reason string
}

func (r refusal) Error() string { return r.reason }

// create handles the POST of an offer over WHIP or WHEP. open adds the peer's tracks.
func (s *server) create(
	open func(name string, peer *webrtc.PeerConnection, offer webrtc.SessionDescription) error,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if r.Method != http.MethodPost || len(parts) != 2 {
			http.Error(w, "POST an offer to /whip/CHANNEL or /whep/CHANNEL.", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, offerBytesMax))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		peer, err := s.api.NewPeerConnection(webrtc.Configuration{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		offer := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: string(body)}
		answer, err := s.negotiate(parts[1], peer, offer, open)
		if err != nil {
			_ = peer.Close()
			status := http.StatusBadRequest
			var r refusal
			if errors.As(err, &r) {
				status = r.status
			}
			http.Error(w, err.Error(), status)
			return
		}
		id := s.keep(peer)
		w.Header().Set("Content-Type", "application/sdp")
		w.Header().Set("Location", "/sessions/"+id)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, answer)
	}
}

// negotiate returns the answer with all candidates.
func (s *server) negotiate(
	name string,
	peer *webrtc.PeerConnection,
	offer webrtc.SessionDescription,
	open func(name string, peer *webrtc.PeerConnection, offer webrtc.SessionDescription) error,
) (string, error) {
	if err := open(name, peer, offer); err != nil {
		return "", err
	}
	answer, err := peer.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err := peer.SetLocalDescription(answer); err != nil {
		return "", err
	}
	<-gathered
	return peer.LocalDescription().SDP, nil
}

func (s *server) keep(peer *webrtc.PeerConnection) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.number++
	id := strconv.Itoa(s.number)
	s.sessions[id] = peer
	return id
}

func (s *server) forget(id string) *webrtc.PeerConnection {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	peer := s.sessions[id]
	delete(s.sessions, id)
	for name, channel := range s.channels {
		if channel.publisher == peer {
			delete(s.channels, name)
		}
	}
	return peer
}

func (s *server) end(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodDelete {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	peer := s.forget(strings.TrimPrefix(r.URL.Path, "/sessions/"))
	if peer == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = peer.Close()
	w.WriteHeader(http.StatusOK)
}

// publish opens a channel: one track for each section of the offer, which every viewer's connection shares.
func (s *server) publish(name string, peer *webrtc.PeerConnection, offer webrtc.SessionDescription) error {
	c := &channel{publisher: peer}
	video, err := webrtc.NewTrackLocalStaticRTP(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}, "video", name)
	if err != nil {
		return err
	}
	audio, err := webrtc.NewTrackLocalStaticRTP(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus}, "audio", name)
	if err != nil {
		return err
	}
	if strings.Contains(offer.SDP, "m=audio") {
		c.tracks = append(c.tracks, audio)
	}
	if strings.Contains(offer.SDP, "m=video") {
		c.tracks = append(c.tracks, video)
	}
	peer.OnTrack(func(remote *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		local := audio
		if remote.Kind() == webrtc.RTPCodecTypeVideo {
			local = video
			c.mutex.Lock()
			c.videoSSRC = uint32(remote.SSRC())
			c.mutex.Unlock()
		}
		forward(remote, local)
	})
	s.mutex.Lock()
	if s.channels[name] != nil {
		s.mutex.Unlock()
		return refusal{http.StatusConflict, "The channel already has a publisher."}
	}
	s.channels[name] = c
	s.mutex.Unlock()
	if err := peer.SetRemoteDescription(offer); err != nil {
		s.mutex.Lock()
		delete(s.channels, name)
		s.mutex.Unlock()
		return err
	}
	return nil
}

// forward sends a publisher's packets to all of its viewers, until the track ends.
func forward(remote *webrtc.TrackRemote, local *webrtc.TrackLocalStaticRTP) {
	packet := make([]byte, packetBytesMax)
	for {
		length, _, err := remote.Read(packet)
		if err != nil {
			return
		}
		// An error concerns one viewer, whose connection closes separately.
		_, _ = local.Write(packet[:length])
	}
}

// watch connects a viewer to a channel.
func (s *server) watch(name string, peer *webrtc.PeerConnection, offer webrtc.SessionDescription) error {
	s.mutex.Lock()
	c := s.channels[name]
	s.mutex.Unlock()
	if c == nil {
		return refusal{http.StatusConflict, "The channel has no publisher."}
	}
	for _, track := range c.tracks {
		sender, err := peer.AddTrack(track)
		if err != nil {
			return err
		}
		go c.answerFeedback(sender)
	}
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			c.requestKeyFrame()
		case webrtc.PeerConnectionStateFailed:
			_ = peer.Close()
		}
	})
	return peer.SetRemoteDescription(offer)
}

// answerFeedback reads a viewer's RTCP, which the interceptors need, and forwards its key frame requests.
func (c *channel) answerFeedback(sender *webrtc.RTPSender) {
	for {
		packets, _, err := sender.ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			switch packet.(type) {
			case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
				c.requestKeyFrame()
			}
		}
	}
}

// requestKeyFrame requests a key frame from the publisher, now or keyFrameSpacing after the last request.
func (c *channel) requestKeyFrame() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.keyFrameDue {
		return
	}
	c.keyFrameDue = true
	time.AfterFunc(time.Until(c.lastKeyFrame.Add(keyFrameSpacing)), func() {
		c.mutex.Lock()
		ssrc := c.videoSSRC
		c.keyFrameDue = false
		c.lastKeyFrame = time.Now()
		c.mutex.Unlock()
		if ssrc != 0 {
			_ = c.publisher.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: ssrc}})
		}
	})
}
