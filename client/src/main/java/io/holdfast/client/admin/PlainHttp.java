package io.holdfast.client.admin;

import java.net.http.HttpClient;
import java.security.Provider;
import java.security.SecureRandom;
import java.time.Duration;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLContextSpi;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;
import org.jspecify.annotations.Nullable;

/**
 * HTTP clients of the admin interface, which is plain HTTP. Java's client prepares TLS even so:
 * reading the certificate authorities and the ciphers takes a noticeable part of a short command.
 * So these clients have none, and refuse {@code https}.
 */
public final class PlainHttp {
    private PlainHttp() {}

    /** A client without TLS and redirects. Thread-safe as any other; close it after use. */
    public static HttpClient client(Duration connectTimeout) {
        return HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(connectTimeout)
                .followRedirects(HttpClient.Redirect.NEVER)
                .sslContext(new NoTls())
                .build();
    }

    private static final class NoTls extends SSLContext {
        NoTls() {
            super(new NoTlsSpi(), new NoProvider(), "none");
        }
    }

    private static final class NoProvider extends Provider {
        private static final long serialVersionUID = 1;

        NoProvider() {
            super("none", "1", "no TLS");
        }
    }

    /** Has parameters, which the client looks at when it is made, and nothing else. */
    private static final class NoTlsSpi extends SSLContextSpi {
        @Override
        protected SSLParameters engineGetDefaultSSLParameters() {
            return new SSLParameters(new String[0], new String[] {"TLSv1.3"});
        }

        @Override
        protected SSLParameters engineGetSupportedSSLParameters() {
            return engineGetDefaultSSLParameters();
        }

        @Override
        protected void engineInit(
                KeyManager @Nullable [] keys,
                TrustManager @Nullable [] trust,
                @Nullable SecureRandom random) {
            throw none();
        }

        @Override
        protected SSLSocketFactory engineGetSocketFactory() {
            throw none();
        }

        @Override
        protected SSLServerSocketFactory engineGetServerSocketFactory() {
            throw none();
        }

        @Override
        protected SSLEngine engineCreateSSLEngine() {
            throw none();
        }

        @Override
        protected SSLEngine engineCreateSSLEngine(String host, int port) {
            throw none();
        }

        @Override
        protected SSLSessionContext engineGetServerSessionContext() {
            throw none();
        }

        @Override
        protected SSLSessionContext engineGetClientSessionContext() {
            throw none();
        }

        private static UnsupportedOperationException none() {
            return new UnsupportedOperationException("this client speaks plain HTTP only");
        }
    }
}
