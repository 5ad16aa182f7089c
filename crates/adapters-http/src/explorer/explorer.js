'use strict';

// The document may name the public URL of the API. This page sends requests to the origin that it was loaded from.
const OwnServer = {
  statePlugins: {
    spec: {
      wrapActions: {
        updateJsonSpec: (update) => (document) =>
          update({ ...document, servers: [{ url: 'v1', description: 'This instance' }] }),
      },
    },
  },
};

// As JSON, Swagger UI would parse a body and round its integers beyond 2^53.
const BodyAsReceived = {
  wrapComponents: {
    responseBody: (Original, { React }) => (properties) =>
      React.createElement(Original, { ...properties, contentType: 'text' }),
  },
};

SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#explorer',
  deepLinking: true,
  displayRequestDuration: true,
  plugins: [OwnServer, BodyAsReceived],
  tryItOutEnabled: true,
  // Neither the document nor the API key leaves this origin.
  validatorUrl: null,
  persistAuthorization: false,
});
